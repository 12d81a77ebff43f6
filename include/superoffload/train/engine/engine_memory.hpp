// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/train/engine/allocation.hpp>
#include <superoffload/train/engine/dry_model.hpp>
#include <superoffload/train/engine/engine_options.hpp>
#include <superoffload/zero/sharding_policy.hpp>

#include <cstddef>
#include <vector>

namespace superoffload::train {

/// The memory of an engine, and which activations it keeps.
struct engine_memory {
  train::allocation allocation;                      ///< in bytes
  autograd::activation_checkpointing checkpointing;  ///< the kept activations of the largest micro-batch
  autograd::activation_offloading offloading{};      ///< of them
};

/// FLOPs that a backward computes again: of the activations that are not kept, and of functions that keep
/// less than their backward needs.
double recomputed_flops(std::vector<autograd::activation> const& activations,
                        autograd::activation_checkpointing const& kept);

/// Chooses the activations that are kept, so that an engine with such a store and state takes at most
/// `memory` bytes, if the options allow the choice. \returns the choice and the resulting memory.
engine_memory plan_memory(dry_model const& model, engine_options const& o, zero::store_bytes const& store,
                          offload::memory_bytes const& state, std::size_t memory);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/engine_memory_inl.hpp>
#endif
