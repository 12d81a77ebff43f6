// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/precision.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include "common/ranks.hpp"

namespace examples {

/// Alone, weights and gradients may flow; a rank has a shard of everything.
template <class Device>
using store = superoffload::zero::offloaded_or_sharded<typename rank_kind<Device>::type>;
template <class Device, class Precision>
using core = superoffload::train::engine_core<Device, Precision, store<Device>, superoffload::offload::super>;

}  // namespace examples

// What fine-tuners of all architectures share is compiled once for each device and precision: in core.cpp.in.
#define EXAMPLES_CORE(DEVICE, PRECISION)                                                       \
  extern template class superoffload::train::engine_core<                                      \
      examples::DEVICE, superoffload::precision::PRECISION, examples::store<examples::DEVICE>, \
      superoffload::offload::super>;                                                           \
  extern template class superoffload::train::basic_trainer<                                    \
      examples::core<examples::DEVICE, superoffload::precision::PRECISION>>;
EXAMPLES_CORE(cpu_device, fp32)
EXAMPLES_CORE(cpu_device, bf16)
#ifdef EXAMPLES_CUDA
EXAMPLES_CORE(cuda_device, fp32)
EXAMPLES_CORE(cuda_device, bf16)
#endif
#undef EXAMPLES_CORE
