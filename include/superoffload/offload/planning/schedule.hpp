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

/// What is simulated: one rank's step.
struct schedule {
  std::vector<unit_time> units;  ///< in the order of the forward
  configuration state;           ///< its buckets by unit and offset
  int micro_batches = 1;
  int element_bytes = 2;  ///< of weights, and of gradients on the link
  double hit_rate = 1.0;  ///< share of the steps whose clip factor is 1, evenly spread
  /// By unit, the elements of those whose weights live on the host and come for each pass; 0 or none: on the
  /// device.
  std::vector<std::int64_t> offloaded_weights;
  int weight_buffers = 2;  ///< units with streamed weights that fit the device at once
  /// By unit, the elements of those whose gradients leave the device as they come, and whose sums of
  /// micro-batches live on the host, 4 bytes each; 0 or none: on the device.
  std::vector<std::int64_t> offloaded_gradients{};
  int gradient_buffers = 3;  ///< units of these whose gradients fit the device at once
  collectives with_ranks{};  ///< what the rank exchanges; no weights are streamed then

  [[nodiscard]] bool offloads_weights(int unit) const {
    auto const u = static_cast<std::size_t>(unit);
    return u < offloaded_weights.size() && offloaded_weights[u] > 0;
  }

  /// What other systems do and this engine does not, to compare it with them.
  struct imitation {
    double wire_bytes = 0.0;      ///< per parameter and direction; 0: element_bytes
    bool returns_last = false;    ///< weights go back when the CPU has served everything
    bool checks_on_host = false;  ///< no check before every gradient has arrived there
    bool oldest_first = false;
  } imitates;
};

}  // namespace superoffload::offload
