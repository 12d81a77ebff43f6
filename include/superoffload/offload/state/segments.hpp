// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/state_format.hpp>
#include <superoffload/kernel/stored_state.hpp>
#include <superoffload/offload/placement.hpp>

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
std::vector<segment> segments_of(autograd::unit_layout const& unit, bucket const& b,
                                 state_format format = state_format::float32);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/state/impl/segments_inl.hpp>
#endif
