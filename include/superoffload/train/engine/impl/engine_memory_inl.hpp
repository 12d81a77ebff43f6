// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/train/engine/batch_staging.hpp>
#include <superoffload/train/engine/engine_memory.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

SUPEROFFLOAD_INLINE engine_memory plan_memory(dry_model const& model, engine_options const& o,
                                              zero::store_bytes const& store,
                                              offload::memory_bytes const& state, std::size_t memory) {
  engine_memory all;
  auto& p = all.allocation;
  auto& checkpointing = all.checkpointing;
  for (auto const& unit : *model.units) {
    for (auto const& tensor : unit.tensors()) {
      p.parameters += tensor.count();
      p.trainable_parameters += tensor.trainable ? tensor.count() : 0;
    }
  }
  auto const largest = o.largest_batch();
  auto const batches = staging_bytes(largest.rows, largest.sequence_ranks);
  p.weights = store.weights;
  p.gradients = store.gradients;
  p.optimizer_state = state.device;
  p.host = state.host + store.host + batches + sizeof(double);
  p.batches = batches + model.table_bytes(o.max_positions);
  p.workspaces = model.gemm_workspace_bytes;

  // A dry pass of the largest micro-batch.
  std::vector<autograd::activation> activations;
  auto const peak_of = [&](autograd::activation_checkpointing const& kept,
                           std::vector<autograd::activation>* list) {
    return model.dry_pass(largest, kept, list);
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
    checkpointing = recompute::offloaded(activations, model.flops_per_byte, offloading);
  } else if (o.recompute == recompute::choice::automatic && p.total() > memory) {
    auto const fixed = p.total() - p.activations;
    checkpointing = recompute::fit(activations, model.flops_per_byte, memory > fixed ? memory - fixed : 0,
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
