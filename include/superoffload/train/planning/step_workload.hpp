// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/offload/planning/collectives.hpp>
#include <superoffload/offload/planning/workload.hpp>
#include <superoffload/train/engine/batch_shape.hpp>
#include <superoffload/train/engine/dry_model.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace superoffload::train {

/// What a step of the data set has on average.
struct expected_step {
  batch_shape micro_batch;  ///< of documents of one length that have the work of the actual ones
  std::int64_t tokens = 0;  ///< over all ranks and micro-batches, without padding
};

/// The inputs of a step's workload besides the model.
struct step_shape {
  batch_shape micro_batch;     ///< the largest one: decides the memory
  std::int64_t sequences = 1;  ///< of a micro-batch
  std::int64_t tokens = 0;     ///< of a step, over all ranks; 0: every micro-batch is the largest
  std::optional<expected_step> expected{};  ///< decides the time; none: the largest micro-batches do
  int micro_batches = 1;                    ///< of each rank in a step
  recompute::choice recompute = recompute::choice::automatic;  ///< automatic: the plan chooses
  bool checks_gradient = true;                                 ///< as in offload::workload
  double hit_rate = 1.0;                                       ///< as in offload::workload
  bool offloads = true;  ///< can the engine's store offload weights and gradients?
  int ranks = 1;         ///< that share the step; all numbers but `tokens` are for one rank
  /// Bytes of device memory for whole gradients, if the engine has shards.
  std::optional<std::size_t> whole_gradients{};
};

namespace detail {

/// What the steps have on average: as given, else what the largest micro-batches have.
expected_step expected_of(step_shape const& s);

/// The collectives of zero::sharded_store: all shards of each unit but the rank's own. None for a single
/// rank.
offload::collectives collectives_of(dry_model const& model, int ranks);

}  // namespace detail

/// The level with the least recompute that fits `activations` bytes.
offload::checkpointing_level level_within(dry_model const& model, step_shape const& s,
                                          std::size_t activations);

/// The level of blocks that take turns in buffers as `how` says.
offload::checkpointing_level offloading_level(dry_model const& model, step_shape const& s,
                                              autograd::activation_offloading const& how);

/// The workload of a step of a model, for the planner. A dry pass gives the work of blocks and the memory of
/// activations.
offload::workload workload_of(dry_model const& model, step_shape const& s);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/step_workload_inl.hpp>
#endif
