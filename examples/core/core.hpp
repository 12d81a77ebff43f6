// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the fine-tuners of all architectures share is compiled once for each device and precision, in the
// sources beside this file: here it is declared.
#include <superoffload/cli/ranks.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/planning/described_run.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

/// The core of the engines of finetune_<architecture>/main.cpp.
template <class Device, class Precision>
using shared_core = superoffload::train::engine_core<
    Device, Precision, superoffload::zero::offloaded_or_sharded<superoffload::cli::ranks<Device>>,
    superoffload::offload::super>;

// INSTANTIATE_CORE(extern, ...) declares, INSTANTIATE_CORE(, ...) defines.
#define INSTANTIATE_CORE(EXTERN, DEVICE, PRECISION)                                                     \
  EXTERN template class superoffload::train::engine_core<                                               \
      superoffload::DEVICE::device, superoffload::precision::PRECISION,                                 \
      superoffload::zero::offloaded_or_sharded<superoffload::cli::ranks<superoffload::DEVICE::device>>, \
      superoffload::offload::super>;                                                                    \
  EXTERN template class superoffload::train::basic_trainer<                                             \
      shared_core<superoffload::DEVICE::device, superoffload::precision::PRECISION>>;

INSTANTIATE_CORE(extern, cpu, fp32)
INSTANTIATE_CORE(extern, cpu, bf16)
#ifdef SUPEROFFLOAD_HAS_CUDA
INSTANTIATE_CORE(extern, cuda, fp32)
INSTANTIATE_CORE(extern, cuda, bf16)
#endif

namespace superoffload::train {
extern template offload::plan plan_on<float>(model::view<described_device, float>, offload::machine const&,
                                             offload::settings const&, training_options const&);
extern template offload::plan plan_on<bfloat16>(model::view<described_device, bfloat16>,
                                                offload::machine const&, offload::settings const&,
                                                training_options const&);
extern template alternatives alternatives_on<float>(model::view<described_device, float>,
                                                    offload::machine const&, training_options const&,
                                                    offload::plan);
extern template alternatives alternatives_on<bfloat16>(model::view<described_device, bfloat16>,
                                                       offload::machine const&, training_options const&,
                                                       offload::plan);
}  // namespace superoffload::train
