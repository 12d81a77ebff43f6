// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/zero/shard.hpp>

#include <vector>

namespace superoffload::zero {

SUPEROFFLOAD_INLINE std::vector<autograd::unit_layout> shards_of(
    std::vector<autograd::unit_layout> const& units, int rank, int ranks) {
  std::vector<autograd::unit_layout> shards;
  shards.reserve(units.size());
  for (auto const& unit : units) {
    auto const size = shard_elements(unit, ranks);
    shards.push_back(unit.part(rank * size, size));
  }
  return shards;
}

}  // namespace superoffload::zero
