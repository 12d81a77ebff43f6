// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/train/engine/engine_memory.hpp>

#include <vector>

namespace superoffload::train {

SUPEROFFLOAD_INLINE double recomputed_flops(std::vector<autograd::activation> const& activations,
                                            autograd::activation_checkpointing const& kept) {
  double sum = 0.0;
  for (auto const& a : activations) {
    sum += a.again.all_flops() + (kept.keeps(a.unit, a.index) ? 0.0 : a.recompute.all_flops());
  }
  return sum;
}

}  // namespace superoffload::train
