// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/model/view.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/train/engine/allocation.hpp>
#include <superoffload/train/engine/batch_staging.hpp>
#include <superoffload/train/engine/dry_pass.hpp>
#include <superoffload/train/engine/engine_options.hpp>
#include <superoffload/train/engine/recompute.hpp>
#include <superoffload/zero/sharding_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
template <element T, device_policy D>
engine_memory plan_memory(D const& device, model::as_view<D, T> const& model, engine_options const& o,
                          zero::store_bytes const& store, offload::memory_bytes const& state,
                          std::size_t memory) {
  engine_memory all;
  auto& p = all.allocation;
  auto& checkpointing = all.checkpointing;
  for (auto const& unit : model.units()) {
    for (auto const& tensor : unit.tensors()) {
      p.parameters += tensor.count();
      p.trainable_parameters += tensor.trainable ? tensor.count() : 0;
    }
  }
  auto const largest = o.largest_batch();
  auto const batches = batch_staging<D>::bytes(largest.rows, largest.sequence_ranks);
  p.weights = store.weights;
  p.gradients = store.gradients;
  p.optimizer_state = state.device;
  p.host = state.host + store.host + batches + sizeof(double);
  p.batches = batches + model.table_bytes(o.max_positions);
  p.workspaces = D::gemm_workspace_bytes;

  // A dry pass of the largest micro-batch.
  std::vector<autograd::activation> activations;
  auto const peak_of = [&](autograd::activation_checkpointing const& kept,
                           std::vector<autograd::activation>* list) {
    return dry_pass<T>(device, model, largest, kept, list);
  };
  p.activations = peak_of({}, &activations);
  auto& offloading = all.offloading;
  if (recompute::adapts(o.recompute)) {
    bool const planned = o.configuration.activations.buffers > 0;
    offloading = planned || o.recompute == recompute::choice::automatic ? o.configuration.activations
                                                                        : recompute::inputs_offloaded;
  }
  if (o.recompute == recompute::choice::every_block) {
    checkpointing = recompute::inputs_only(activations);
  } else if (offloading.buffers > 0) {
    checkpointing = recompute::offloaded(activations, D::flops_per_byte, offloading);
  } else if (o.recompute == recompute::choice::automatic && p.total() > memory) {
    auto const fixed = p.total() - p.activations;
    checkpointing = recompute::fit(activations, D::flops_per_byte, memory > fixed ? memory - fixed : 0,
                                   [&](auto const& kept) { return peak_of(kept, nullptr); });
  }
  p.activations = peak_of(checkpointing, nullptr);
  p.activations_on_host = checkpointing.buffers().host_bytes();
  p.host += p.activations_on_host;
  p.results = static_cast<std::int64_t>(activations.size());
  p.results_recomputed = std::count_if(activations.begin(), activations.end(),
                                       [&](auto const& a) { return !checkpointing.keeps(a.unit, a.index); });
  p.recomputed_flops_per_token =
      recomputed_flops(activations, checkpointing) / static_cast<double>(largest.rows);
  return all;
}

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/engine_memory_inl.hpp>
#endif
