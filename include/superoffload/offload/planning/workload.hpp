// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/offload/planning/collectives.hpp>
#include <superoffload/offload/planning/machine.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::offload {

/// Work of a device: FLOPs of GEMMs, of attention, of grouped GEMMs and of FP8 GEMMs, bytes of device memory
/// that other functions read and write, and bytes for other ranks.
struct device_work {
  double gemms = 0.0;      ///< FLOPs
  double attention = 0.0;  ///< FLOPs
  double bytes = 0.0;      ///< read and written
  double grouped = 0.0;    ///< FLOPs of grouped GEMMs
  double float8 = 0.0;     ///< FLOPs of GEMMs of numbers of 8 bits
  double exchanged = 0.0;  ///< bytes that go to ranks that share the rows; the device waits for them

  /// Adds each kind by itself.
  friend device_work operator+(device_work a, device_work b) {
    return {a.gemms + b.gemms,     a.attention + b.attention, a.bytes + b.bytes,
            a.grouped + b.grouped, a.float8 + b.float8,       a.exchanged + b.exchanged};
  }
};

/// The work of one micro-batch in one unit.
struct unit_work {
  device_work forward;   ///< the same at every level of recompute
  device_work backward;  ///< without recompute
};

/// One choice of the activations that are kept from forward to backward.
struct checkpointing_level {
  std::string name;                              ///< as a plan shows it
  std::size_t activations = 0;                   ///< bytes of device memory at the peak
  std::vector<device_work> recompute;            ///< by unit, what its backward recomputes
  autograd::activation_offloading offloading{};  ///< of the largest micro-batch
  std::size_t on_host = 0;                       ///< bytes of host memory for its offloaded activations
  /// Of the expected micro-batch: by unit, the bytes that leave the device; empty: none. Blocks that leave
  /// are the first ones.
  std::vector<double> leaving{};
  int buffers = 0;  ///< device buffers in which its blocks take turns
  int blocks = 0;   ///< that take turns
};

/// A training step to be planned.
struct workload {
  std::vector<unit_work> units;             ///< in the order of the forward, as the layouts
  std::vector<checkpointing_level> levels;  ///< from most activations kept to fewest
  int micro_batches = 1;                    ///< of each rank in a step
  std::int64_t tokens = 0;                  ///< of a whole step, on all ranks
  double model_flops = 0.0;  ///< of a whole step on all ranks, forward and backward, without recompute
  /// Bytes of device memory beside weights, gradients, state and activations.
  std::size_t workspaces = 0, host_workspaces = 0;  ///< the same of host memory
  collectives with_ranks{};                         ///< if the layouts are shards
  /// If the layouts are shards: bytes of each unit's gathered weights, in one of configuration::buffers.
  std::vector<std::size_t> whole_weights;
  std::size_t whole_gradients = 0;  ///< of device memory for all whole gradients, if the layouts are shards
  int element_bytes = 2;            ///< of working weights: 2 or 4
  bool checks_gradient = true;      ///< is a step clipped, or skipped where it is not finite?
  bool weights_may_leave = true;    ///< does the store support weights on the host?
  /// Does the store support offloaded gradients? With several ranks, only without a gradient check and with
  /// one micro-batch.
  bool gradients_may_leave = true;
  double hit_rate = 1.0;  ///< share of the steps with clip factor 1
};

/// Seconds of device time of a unit in one micro-batch.
struct unit_time {
  double forward = 0.0;   ///< the same at every level of recompute
  double backward = 0.0;  ///< with recompute
};

/// Seconds of a micro-batch's GEMMs of all kinds, with recompute, at the rates of `m`.
double gemm_time(machine const& m, workload const& w, checkpointing_level const& level);

/// The units' times at the rates of `m`.
std::vector<unit_time> unit_times(machine const& m, workload const& w, checkpointing_level const& level);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/workload_inl.hpp>
#endif
