// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/sequence_slice.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/optim/adamw.hpp>
#include <superoffload/train/engine/batch_shape.hpp>
#include <superoffload/train/engine/lay_out.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <cstdint>

namespace superoffload::train {

/// The run-time options of an engine.
struct engine_options {
  optim::adamw_settings adamw{};   ///< of all trained tensors
  double max_grad_norm = 1.0;      ///< 0: no clipping
  std::int64_t max_rows = 0;       ///< tokens of the largest micro-batch, padding included
  std::int64_t max_positions = 0;  ///< tokens of the longest document
  /// So many ranks, neighbours, share each micro-batch: they get the same one, and each computes a part of
  /// its rows, in attention a part of its heads. Divides the ranks, the heads and the key heads.
  int sequence_ranks = 1;
  bool accumulates = false;                               ///< will a step have several micro-batches?
  recompute::choice recompute = recompute::choice::none;  ///< read by recompute::configured
  /// Where state, weights and gradients live, read by offload::super and zero::offloaded; zero::sharded reads
  /// its gather buffers.
  offload::configuration configuration{};
  /// Which tensors are trained; empty: all.
  tensor_choice trainable{}, decays{};  ///< to which of those weight decay applies; empty: to all
  bool records = false;                 ///< record what works when: engine_core::times()

  /// The largest micro-batch as one rank has it.
  [[nodiscard]] batch_shape largest_batch() const {
    return {data::rows_of_slice(max_rows, sequence_ranks), max_positions, sequence_ranks};
  }
};

/// The result of engine_core::step().
struct step_result {
  double grad_norm = 0.0;  ///< before clipping
  float factor = 1.0F;     ///< the clip factor that was applied
  /// False: the gradient was not finite, or there was no label, and nothing was changed. Exception: in the
  /// immediate mode (offload::configuration), a gradient that was not finite may have reached the state; no
  /// forward is possible then.
  bool accepted = true;
};

}  // namespace superoffload::train
