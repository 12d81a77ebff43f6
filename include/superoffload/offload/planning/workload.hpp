// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/collectives.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::offload {

/// What a device has to do: FLOPs of matrix products, of attention and of products by groups of rows, and
/// bytes of device memory that other functions read and write.
struct device_work {
  double gemms = 0.0;
  double attention = 0.0;
  double bytes = 0.0;
  double grouped = 0.0;

  friend device_work operator+(device_work a, device_work b) {
    return {a.gemms + b.gemms, a.attention + b.attention, a.bytes + b.bytes, a.grouped + b.grouped};
  }
};

/// What one micro-batch takes in one unit.
struct unit_work {
  device_work forward;
  device_work backward;  ///< nothing computed again
};

/// A choice of what is kept from forward to backward.
struct checkpointing_level {
  std::string name;
  std::size_t activations = 0;         ///< bytes of device memory at the peak
  std::vector<device_work> recompute;  ///< of each unit, what its backward computes again
};

/// A training step to be planned.
struct workload {
  std::vector<unit_work> units;             ///< in the order of the forward, as the layouts
  std::vector<checkpointing_level> levels;  ///< from the one that keeps most to the one that keeps least
  int micro_batches = 1;
  std::int64_t tokens = 0;   ///< of a whole step, on all ranks
  double model_flops = 0.0;  ///< of a whole step on all ranks, forward and backward, nothing computed again
  /// Bytes beside weights, gradients, state and activations, of device and of host memory.
  std::size_t workspaces = 0, host_workspaces = 0;
  collectives with_ranks{};  ///< where the layouts are shards
  /// Where the layouts are shards: bytes of each unit's weights while it is whole, in one of
  /// configuration::buffers, and of device memory for all whole gradients.
  std::vector<std::size_t> whole_weights;
  std::size_t whole_gradients = 0;
  int element_bytes = 2;          ///< of working weights: 2 or 4
  bool checks_gradient = true;    ///< is a step clipped, or skipped where it is not finite?
  bool weights_may_leave = true;  ///< is there a store for weights on the host?
  /// Is there one whose gradients leave the device as they come? Those of ranks do where nothing waits for
  /// the check, and of one micro-batch.
  bool gradients_may_leave = true;
  double hit_rate = 1.0;  ///< share of the steps whose clip factor is 1

  /// Bytes of an element's state beside its weight: m, v, and what the weight does not hold of the master.
  [[nodiscard]] std::size_t state_bytes() const {
    return split_state_bytes(static_cast<std::size_t>(element_bytes));
  }
};

/// Seconds of device time of a unit in one micro-batch.
struct unit_time {
  double forward = 0.0;
  double backward = 0.0;  ///< with what it computes again
};

/// The units' times at the rates of `m`.
std::vector<unit_time> unit_times(machine const& m, workload const& w, checkpointing_level const& level);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/workload_inl.hpp>
#endif
