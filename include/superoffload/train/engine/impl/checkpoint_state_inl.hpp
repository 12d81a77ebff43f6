// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/train/engine/checkpoint_state.hpp>

#include <optional>
#include <string_view>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE std::optional<int> rank_with(std::string_view field,
                                                 io::checkpoint_reader const& checkpoint, int rank) {
  auto const holds = [&](int r) { return checkpoint.is_here(r) && checkpoint.has(field, r); };
  if (rank < checkpoint.world_size() && holds(rank)) {
    return rank;
  }
  for (int r = 0; r < checkpoint.world_size(); ++r) {
    if (holds(r)) {
      return r;
    }
  }
  return std::nullopt;
}

}  // namespace detail

}  // namespace superoffload::train
