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

/// Bytes of one kind of memory by use.
struct tier_bytes {
  std::size_t weights = 0;          ///< working weights, with the buffers for offloaded or gathered ones
  std::size_t gradients = 0;        ///< and their buffers; on the host: sums over micro-batches
  std::size_t state = 0;            ///< of the optimizer
  std::size_t pinned_buffers = 0;   ///< gradients that are copied or kept, and weights that are copied
  std::size_t staging_buffers = 0;  ///< of device-updated state, and for packing gradients
  std::size_t activations = 0;      ///< at the peak of a step
  std::size_t workspaces = 0;       ///< batches, tables, partial norms, workspaces of GEMMs

  /// For all uses.
  [[nodiscard]] std::size_t total() const {
    return weights + gradients + state + pinned_buffers + staging_buffers + activations + workspaces;
  }
};

/// The planner's decisions and what they imply: everything known of a run before anything is allocated.
struct plan {
  bool fits = true;     ///< is there enough memory?
  std::string refusal;  ///< if it does not fit: what would help; the rest is the smallest candidate's

  configuration state;    ///< of the optimizer state, and what else is offloaded
  std::size_t level = 0;  ///< of workload::levels
  std::string recompute;  ///< that level's name
  /// By unit, elements of weights that live on the host, as in schedule. Empty: none.
  std::vector<std::int64_t> offloaded_weights;

  /// @{
  /// The shares of the trainable parameters whose state is in this memory tier.
  double resident = 0.0, host = 0.0, device_updated = 0.0;
  /// @}

  /// @{
  /// Bytes by use. If device and host share one memory, it holds both.
  tier_bytes on_device, on_host;
  /// @}
  /// @{
  /// Bytes that a plan may take; the same memory twice if device and host share one.
  std::size_t device_available = 0, host_available = 0;
  /// @}
  std::size_t pinned = 0;  ///< bytes of pinned host memory

  double step_time = 0.0;          ///< s, simulated, in the steady state
  double bound = 0.0;              ///< s, lower bound: step_bound, or the time of collectives
  int gathered_units = 0;          ///< of a rank, units whose weights are gathered; 0: a single rank
  double exchanged = 0.0;          ///< bytes that a rank sends to others in a step; 0: a single rank
  double collective_time = 0.0;    ///< s of the collectives, overlapped or not; `step` has the wait for them
  double rows_exchanged = 0.0;     ///< bytes that a rank sends beside these to ranks that share rows
  double rows_time = 0.0;          ///< s in which the device waits for that
  double tokens_per_second = 0.0;  ///< of all ranks together, at `step_time`
  double model_flops_per_second = 0.0;  ///< of all ranks together, without recompute
  timeline step;                        ///< simulated, in the steady state

  /// Of a rank: how many units may be gathered at once.
  [[nodiscard]] int whole_at_once() const { return std::min(state.buffers.weights, gathered_units); }
  /// Units whose gradients are added up on the host.
  [[nodiscard]] std::ptrdiff_t sums_on_host() const {
    auto const& leave = state.offloaded.gradients;
    return on_host.gradients > 0 ? std::count(leave.begin(), leave.end(), true) : 0;
  }
};

/// \returns a few lines for the user.
std::string describe(plan const& p);

/// \throws error(cannot_fit) with the refusal, if the plan does not fit.
void expect_fits(plan const& p);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/plan_inl.hpp>
#endif
