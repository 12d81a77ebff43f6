// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/state/segments.hpp>

#include <algorithm>
#include <cstddef>
#include <sys/stat.h>
#include <vector>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE std::vector<segment> segments_of(autograd::unit_layout const& unit, bucket const& b,
                                                     state_format format) {
  std::vector<segment> segments;
  auto const& tensors = unit.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto const& tensor = tensors[i];
    auto const behind = i + 1 < tensors.size() ? tensors[i + 1].offset : unit.elements();
    auto const begin = std::max(tensor.offset, b.offset);
    auto const end = std::min(behind, b.offset + b.count);
    if (begin >= end) {
      continue;
    }
    bool const decays = tensor.trainable && tensor.decays;
    if (!segments.empty() && segments.back().trainable == tensor.trainable &&
        segments.back().decays == decays) {
      segments.back().count += end - begin;
    } else {
      expect(format != state_format::int8 || (begin - b.offset) % kernel::state_block == 0,
             exit_code::bad_input, "--state int8: tensor '", tensor.name, "' begins at element ",
             unit.begin() + tensor.offset, " of '", unit.name(), "', within a block of ", kernel::state_block,
             ", and the tensor before it is frozen, or decays, where this one does not: expected both alike, "
             "or --state bf16");
      segments.push_back({begin - b.offset, end - begin, tensor.trainable, decays});
    }
  }
  return segments;
}

}  // namespace superoffload::offload
