// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/division.hpp>
#include <superoffload/kernel/reduction.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::zero {

/// The number of buffers for whole units on a rank, which keeps only a shard of each. buffer_sizes has their
/// sizes.
struct gather_buffers {
  /// One for each unit that is used at once, and one to gather into meanwhile. With more, units stay gathered
  /// from forward to backward, the last ones first.
  int weights = 3;
  int gradients = 3;  ///< one for each unit whose gradient is written at once, and one being reduced
  bool tied_embeddings = false;  ///< are the first and the last unit used at once?
};

/// The copies of the weights that ranks keep: one of all ranks, or one of each host's. A copy is whole, in
/// parts of neighbours: each keeps those shards of which it and its counterparts in the other copies are the
/// owners. So a unit is gathered from neighbours alone, once its owners have exchanged their new shards.
struct weight_copies {
  int ranks = 1;    ///< of the group
  int of_each = 1;  ///< neighbours that keep a copy, a divisor of `ranks`

  /// `of_each`: 0 for all ranks.
  static weight_copies among(int ranks, int of_each) { return {ranks, of_each > 0 ? of_each : ranks}; }

  [[nodiscard]] int number() const { return ranks / of_each; }
  /// Which copy a rank keeps a part of: the place of its shard in that part.
  [[nodiscard]] int of(int rank) const { return rank / of_each; }
  /// The ranks that keep a copy.
  [[nodiscard]] comm::division within() const {
    return number() == 1 ? comm::division{} : comm::neighbours(of_each);
  }
  /// The owners of the shards in a part.
  [[nodiscard]] comm::division between() const { return comm::counterparts(of_each); }
};

/// Elements of each rank's shard of a unit. All shards have one size and are cut on the grid of the gradient
/// norm; the last ones are padded.
inline std::int64_t shard_elements(autograd::unit_layout const& unit, int ranks) {
  auto const cells = kernel::norm_cells(unit.elements());
  return (cells + ranks - 1) / ranks * kernel::norm_grid;
}

/// Bytes of a unit's whole weights, of `element_bytes` each: the shards of all ranks.
inline std::size_t whole_weight_bytes(autograd::unit_layout const& unit, int ranks,
                                      std::size_t element_bytes) {
  return static_cast<std::size_t>(shard_elements(unit, ranks) * ranks) * element_bytes;
}

/// The part of elements [first, first + count) of a unit that a rank owns; it may be empty.
struct owned_range {
  std::int64_t begin = 0;  ///< in the rank's shard
  std::int64_t skip = 0;   ///< elements before it that other ranks own
  std::int64_t count = 0;  ///< elements; 0: the rank owns none of them
};
inline owned_range owned_part(autograd::unit_layout const& unit, int rank, int ranks, std::int64_t first,
                              std::int64_t count) {
  auto const size = shard_elements(unit, ranks);
  auto const begin = std::max(first, rank * size);
  auto const end = std::min(first + count, (rank + 1) * size);
  return begin < end ? owned_range{begin - rank * size, begin - first, end - begin} : owned_range{};
}

/// A rank's shards as units of their own. The optimizer state knows nothing else of ranks.
std::vector<autograd::unit_layout> shards_of(std::vector<autograd::unit_layout> const& units, int rank,
                                             int ranks);

}  // namespace superoffload::zero

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/zero/impl/shard_inl.hpp>
#endif
