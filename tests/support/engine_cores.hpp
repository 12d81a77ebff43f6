// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cores of engines and trainers that several tests use, declared: engine_cores_<precision>.cpp compiles
// each once.
#include <superoffload/comm/shared.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/offload/none.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>
#include <superoffload/zero/resident.hpp>
#include <superoffload/zero/sharded.hpp>

// INSTANTIATE_ENGINE_CORES(extern, ...) declares, INSTANTIATE_ENGINE_CORES(, ...) defines.
#define ENGINE_CORE(PRECISION, SHARDING, OFFLOAD)                                                 \
  superoffload::train::engine_core<superoffload::cpu::device, superoffload::precision::PRECISION, \
                                   superoffload::zero::SHARDING, superoffload::offload::OFFLOAD>
#define INSTANTIATE_ENGINE_CORE(EXTERN, ...) EXTERN template class ENGINE_CORE(__VA_ARGS__);
#define INSTANTIATE_TRAINER(EXTERN, ...) \
  EXTERN template class superoffload::train::basic_trainer<ENGINE_CORE(__VA_ARGS__)>;
#define INSTANTIATE_ENGINE_CORES(EXTERN, PRECISION)                                                   \
  INSTANTIATE_ENGINE_CORE(EXTERN, PRECISION, resident, none)                                          \
  INSTANTIATE_ENGINE_CORE(EXTERN, PRECISION, resident, super)                                         \
  INSTANTIATE_ENGINE_CORE(EXTERN, PRECISION, offloaded, super)                                        \
  INSTANTIATE_ENGINE_CORE(EXTERN, PRECISION, sharded<superoffload::comm::shared>, none)               \
  INSTANTIATE_ENGINE_CORE(EXTERN, PRECISION, sharded<superoffload::comm::shared>, super)              \
  INSTANTIATE_ENGINE_CORE(EXTERN, PRECISION, offloaded_or_sharded<superoffload::comm::shared>, super) \
  INSTANTIATE_TRAINER(EXTERN, PRECISION, offloaded_or_sharded<superoffload::comm::shared>, super)

INSTANTIATE_ENGINE_CORES(extern, fp32)
INSTANTIATE_ENGINE_CORES(extern, bf16)
