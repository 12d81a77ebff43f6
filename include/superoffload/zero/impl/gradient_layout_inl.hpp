// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/zero/gradient_layout.hpp>

#include <cstddef>
#include <vector>

namespace superoffload::zero {

SUPEROFFLOAD_INLINE std::vector<unit_range> unwritten(autograd::unit_layout const& unit, bool padding) {
  std::vector<unit_range> ranges;
  auto const& tensors = unit.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto const end = tensors[i].offset + tensors[i].count();
    auto const behind = i + 1 < tensors.size() ? tensors[i + 1].offset : unit.elements();
    auto const begin = tensors[i].trainable ? end : tensors[i].offset;
    auto const until = padding ? behind : end;
    if (begin < until) {
      ranges.push_back({begin, until - begin});
    }
  }
  return ranges;
}

}  // namespace superoffload::zero
