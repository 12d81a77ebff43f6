// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace superoffload::comm {

/// The ranks first, first + step, ... of a group.
struct subset {
  int first = 0, step = 1;
  int number = 0;  ///< of ranks

  /// Member i.
  [[nodiscard]] constexpr int rank(int i) const noexcept { return first + i * step; }
  /// Which member a rank is; meaningful for members only.
  [[nodiscard]] constexpr int index_of(int rank) const noexcept { return (rank - first) / step; }
  [[nodiscard]] constexpr bool has(int rank) const noexcept {
    return rank >= first && (rank - first) % step == 0 && index_of(rank) < number;
  }
};

/// How the ranks are divided for an operation: into subsets of one size, each of which makes it among itself.
/// All subsets do so at the same time.
struct division {
  int neighbours = 0;         ///< so many consecutive ranks, a divisor of their number; 0: all ranks
  bool counterparts = false;  ///< a subset is not neighbours, but all ranks of one place among theirs

  /// The subset that `rank` of `ranks` is in.
  [[nodiscard]] constexpr subset of(int rank, int ranks) const noexcept {
    int const size = neighbours > 0 ? neighbours : ranks;
    return counterparts ? subset{rank % size, size, ranks / size} : subset{rank / size * size, 1, size};
  }
  friend constexpr bool operator==(division const&, division const&) = default;
};

/// Each `number` consecutive ranks, such as those of a host.
constexpr division neighbours(int number) noexcept { return {number, false}; }
/// The ranks that have the same place among their `number` neighbours, such as one of each host.
constexpr division counterparts(int number) noexcept { return {number, true}; }

}  // namespace superoffload::comm
