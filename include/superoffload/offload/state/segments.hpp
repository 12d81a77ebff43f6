// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/state_format.hpp>
#include <superoffload/kernel/stored_state.hpp>
#include <superoffload/offload/placement.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace superoffload::offload {

/// A piece of a bucket with one treatment by the optimizer.
struct segment {
  std::int64_t offset = 0;  ///< in elements from the start of the bucket
  std::int64_t count = 0;   ///< elements
  bool trainable = true;    ///< are its tensors trained?
  bool decays = true;       ///< does weight decay apply?
};

/// The segments of a bucket, without gaps. Padding belongs to the tensor before it: it is zero, its gradient
/// is zero, and the update keeps it zero.
/// \throws error(bad_input) for a segment that begins within a block of the format
inline std::vector<segment> segments_of(autograd::unit_layout const& unit, bucket const& b,
                                        state_format format = state_format::float32) {
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
