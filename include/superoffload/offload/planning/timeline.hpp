// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

namespace superoffload::offload {

/// The parts of a machine that work concurrently.
enum class lane {
  compute,      ///< the device's forward and backward
  device_adam,  ///< the device's updates of resident and device-updated state; forward and backward wait
                ///< meanwhile
  down,         ///< copies from device to host
  up,           ///< copies from host to device
  cpu,          ///< CPU Adam, all workers on one bucket
  collective,   ///< collectives between ranks
};
inline constexpr int lanes = 6;

enum class activity {
  forward,
  backward,
  device_update,
  gradient,  ///< down
  weights,   ///< up, of a bucket that CPU Adam has updated
  unit,      ///< up: a unit's offloaded weights, before their use
  sum_up,    ///< the sum of a gradient over micro-batches
  sum_down,
  state_up,  ///< state of a device-updated bucket
  state_down,
  gather,  ///< a unit's weights, from all ranks
  reduce,  ///< a unit's gradient, summed over all ranks
  activations_down,
  activations_up,
  update,  ///< the rest: adam_task
  speculate,
  commit,
  commit_speculate,
  commit_update,
};

inline constexpr int activities = 19;
/// Keys of the plan file.
inline constexpr std::array<char const*, activities> activity_names{
    "forward",   "backward", "device update",      "gradient",       "weights",
    "unit",      "sum up",   "sum down",           "state up",       "state down",
    "gather",    "reduce",   "activations down",   "activations up", "update",
    "speculate", "commit",   "commit + speculate", "commit + update"};

/// One activity of a lane.
struct interval {
  lane where;     ///< the lane that works
  activity what;  ///< the kind of its work
  int unit;       ///< index in the order of the forward
  /// In s since the step began.
  double begin, end;  ///< likewise
};

/// A step in the steady state, from one gradient check to the next.
struct timeline {
  double step_time = 0.0;            ///< s; the mean if steps differ, of which `intervals` shows one
  std::vector<interval> intervals;   ///< in the order of their ends
  std::vector<double> waits;         ///< by unit: mean s that the device was idle before its passes
  double waited_for_ranks = 0.0;     ///< s in which the device was idle only because of collectives
  std::array<double, lanes> busy{};  ///< share of the step
  /// Buckets per step.
  double speculated = 0.0;  ///< updated before the check
  double committed = 0.0;   ///< state written later, in idle time or with the next step
  double updated = 0.0;     ///< updated after the check, or at once in the immediate mode
  double resent = 0.0;      ///< speculative updates that were wrong
};

}  // namespace superoffload::offload
