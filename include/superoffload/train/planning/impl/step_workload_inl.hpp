// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/train/planning/step_workload.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE offload::device_work device_work_of(autograd::work const& w) {
  return {w.flops, w.attention, w.bytes, w.grouped, w.float8, w.exchanged};
}

SUPEROFFLOAD_INLINE expected_step expected_of(step_shape const& s) {
  auto const full = std::int64_t{s.ranks} * s.micro_batches * s.micro_batch.rows;
  return s.expected.value_or(expected_step{s.micro_batch, s.tokens > 0 ? std::min(s.tokens, full) : full});
}

SUPEROFFLOAD_INLINE void add_leaving(std::vector<autograd::activation> const& work,
                                     autograd::activation_checkpointing const& kept,
                                     offload::checkpointing_level& level) {
  auto const& buffers = kept.buffers();
  level.buffers = buffers.count;
  if (buffers.leaving() == 0) {
    return;
  }
  level.leaving.resize(level.recompute.size());
  int block = -1, unit = -1;
  for (auto const& a : work) {
    block += a.unit == unit ? 0 : 1;
    unit = a.unit;
    if (block < buffers.leaving() && kept.keeps(a.unit, a.index)) {
      level.leaving[static_cast<std::size_t>(a.unit)] += static_cast<double>(a.bytes);
    }
  }
}

}  // namespace detail

}  // namespace superoffload::train
