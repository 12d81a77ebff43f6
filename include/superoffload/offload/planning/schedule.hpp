// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/planning/collectives.hpp>
#include <superoffload/offload/planning/workload.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::offload {

/// The input of the simulation: one rank's step.
struct schedule {
  std::vector<unit_time> units;  ///< in the order of the forward
  configuration state;           ///< its buckets by unit and offset
  int micro_batches = 1;         ///< of each rank in a step
  int element_bytes = 2;         ///< of weights, and of gradients on the link
  double hit_rate = 1.0;         ///< share of the steps with clip factor 1, evenly spread
  /// By unit, the elements of weights that live on the host and are copied up for each pass; 0 or missing: on
  /// the device.
  std::vector<std::int64_t> offloaded_weights;
  int weight_buffers = 2;  ///< device buffers for offloaded weights, in units
  /// By unit, the elements of gradients that leave the device as they become final, and whose sums over
  /// micro-batches live on the host, 4 bytes each; 0 or missing: on the device.
  std::vector<std::int64_t> offloaded_gradients{};
  int gradient_buffers = 3;  ///< device buffers for offloaded gradients, in units
  /// By unit, the bytes of activations that leave the device after its forward, and come back for its
  /// backward; 0 or missing: none. They are the first ones of the blocks that take turns in the buffers.
  std::vector<double> offloaded_activations{};
  int activation_buffers = 0;  ///< of the device; 0: each block has its own memory
  collectives with_ranks{};    ///< of several ranks; no weights are offloaded then

  /// Does any weight of the unit live on the host?
  [[nodiscard]] bool offloads_weights(int unit) const {
    auto const u = static_cast<std::size_t>(unit);
    return u < offloaded_weights.size() && offloaded_weights[u] > 0;
  }

  /// What other systems do differently, for comparisons with them.
  struct imitation {
    double wire_bytes = 0.0;      ///< per parameter and direction; 0: element_bytes
    bool returns_last = false;    ///< weights go up when the CPU has updated everything
    bool checks_on_host = false;  ///< the check waits until every gradient is on the host
    /// Gradients are taken in the order in which they come, not the newest first.
    bool oldest_first = false;
  } imitates;  ///< nothing, unless a field is set
};

}  // namespace superoffload::offload
