// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/core/inline.hpp>

#include <cstddef>

namespace superoffload::autograd {

SUPEROFFLOAD_INLINE void activation_checkpointing::set(activation const& a, bool dropped) {
  auto const u = static_cast<std::size_t>(a.unit);
  auto const i = static_cast<std::size_t>(a.index);
  if (dropped_.size() <= u) {
    dropped_.resize(u + 1);
  }
  if (dropped_[u].size() <= i) {
    dropped_[u].resize(i + 1);
  }
  dropped_[u][i] = dropped;
}

}  // namespace superoffload::autograd
