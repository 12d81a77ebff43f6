// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/planning/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::offload {

/// Bytes of one kind of memory by what they are for.
struct tier_bytes {
  std::size_t weights = 0;
  std::size_t gradients = 0;
  std::size_t state = 0;
  std::size_t pinned_buffers = 0;   ///< pinned: gradients on their way or kept, and weights on theirs
  std::size_t staging_buffers = 0;  ///< of streamed state, and for packing gradients
  std::size_t activations = 0;
  std::size_t workspaces = 0;  ///< batches, tables, partial norms, what matrix products keep

  [[nodiscard]] std::size_t total() const {
    return weights + gradients + state + pinned_buffers + staging_buffers + activations + workspaces;
  }
};

/// What was decided, and what it means: everything that is known of a run before anything is allocated.
struct plan {
  bool fits = true;
  std::string refusal;  ///< where it does not fit: what would. The rest is then the least that was tried

  configuration state;
  std::size_t level = 0;  ///< of workload::levels
  std::string recompute;  ///< its name
  /// By unit, elements of weights that live on the host, as in schedule; none where it is empty.
  std::vector<std::int64_t> offloaded_weights;

  double resident = 0.0, host = 0.0,
         device_updated = 0.0;  ///< shares of the trainable parameters by their place

  tier_bytes on_device, on_host;
  std::size_t device_available = 0, host_available = 0;
  std::size_t pinned = 0;  ///< bytes of the host's that copies come from or go to

  double step_time = 0.0;        ///< s, simulated; of the steps that have come to run alike
  double bound = 0.0;            ///< s that it needs at least: step_bound, or what ranks exchange
  int gathered_units = 0;        ///< of a rank, units whose weights are gathered; 0: it is alone
  double exchanged = 0.0;        ///< bytes that leave a rank for others, of a step; 0: it is alone
  double collective_time = 0.0;  ///< s that these take alone; what is waited for: `step`
  double tokens_per_second = 0.0;
  double model_flops_per_second = 0.0;
  timeline step;

  /// Of a rank, units whose weights may be whole on the device at once.
  [[nodiscard]] int whole_at_once() const { return std::min(state.buffers.weights, gathered_units); }
  /// Units whose gradients are added up on the host.
  [[nodiscard]] std::ptrdiff_t sums_on_host() const {
    auto const& leave = state.offloaded.gradients;
    return on_host.gradients > 0 ? std::count(leave.begin(), leave.end(), true) : 0;
  }
};

/// For people, a few lines.
std::string describe(plan const& p);

/// \throws error(cannot_fit) with the refusal.
void expect_fits(plan const& p);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/plan_inl.hpp>
#endif
