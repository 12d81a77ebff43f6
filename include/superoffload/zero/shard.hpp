// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/reduction.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::zero {

/// How many units at once are whole on a device that has a shard of each only. How large that is:
/// buffer_sizes.
struct gather_buffers {
  /// One for each unit that is used at once, and one to gather into meanwhile. With more of them units stay
  /// from forward to backward, the last ones first.
  int weights = 3;
  int gradients = 3;  ///< one for each unit whose gradient is written at once, one that is being summed
  bool tied_embeddings = false;  ///< are the first unit and the last used at once, as by a tied head?
};

/// Elements of each rank's shard of a unit: all of a size, cut on the grid of the norm, the last ones padded.
inline std::int64_t shard_elements(autograd::unit_layout const& unit, int ranks) {
  auto const cells = kernel::norm_cells(unit.elements());
  return (cells + ranks - 1) / ranks * kernel::norm_grid;
}

/// Bytes of a unit that is whole: a shard of each rank.
template <element T>
std::size_t whole_weight_bytes(autograd::unit_layout const& unit, int ranks) {
  return static_cast<std::size_t>(shard_elements(unit, ranks) * ranks) * sizeof(T);
}

/// The part of elements [first, first + count) of a unit that a rank owns, empty where it owns none of it.
struct owned_range {
  std::int64_t begin = 0;  ///< in the rank's shard
  std::int64_t skip = 0;   ///< elements before it that are others'
  std::int64_t count = 0;
};
inline owned_range owned_part(autograd::unit_layout const& unit, int rank, int ranks, std::int64_t first,
                              std::int64_t count) {
  auto const size = shard_elements(unit, ranks);
  auto const begin = std::max(first, rank * size);
  auto const end = std::min(first + count, (rank + 1) * size);
  return begin < end ? owned_range{begin - rank * size, begin - first, end - begin} : owned_range{};
}

/// A rank's shards as units of their own, which is all that an optimizer's state gets to know of ranks.
inline std::vector<autograd::unit_layout> shards_of(std::vector<autograd::unit_layout> const& units, int rank,
                                                    int ranks) {
  std::vector<autograd::unit_layout> shards;
  shards.reserve(units.size());
  for (auto const& unit : units) {
    auto const size = shard_elements(unit, ranks);
    shards.push_back(unit.part(rank * size, size));
  }
  return shards;
}

}  // namespace superoffload::zero
