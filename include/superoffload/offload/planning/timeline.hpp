// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

namespace superoffload::offload {

/// What works on its own during a step.
enum class lane {
  compute,      ///< the device's forward and backward
  device_adam,  ///< the device's updates of resident and streamed state, which hold up the former
  down,         ///< copies from device to host
  up,           ///< copies from host to device
  cpu,          ///< CPU Adam, all workers on one bucket
  collective,   ///< between ranks
};
inline constexpr int lanes = 6;

enum class activity {
  forward,
  backward,
  device_update,
  gradient,  ///< down
  weights,   ///< up, of a bucket that CPU Adam has served
  unit,      ///< up: streamed weights ahead of their use
  sum_up,    ///< the sum of a gradient, to be added to
  sum_down,
  state_up,  ///< state of a streamed bucket
  state_down,
  gather,  ///< a unit's weights from all ranks
  reduce,  ///< a unit's gradient, summed over all ranks
  update,  ///< the rest: adam_task
  speculate,
  commit,
  commit_speculate,
  commit_update,
};

inline constexpr int activities = 17;
inline constexpr std::array<char const*, activities> activity_names{
    "forward", "backward", "device update", "gradient",      "weights",        "unit",
    "sum up",  "sum down", "state up",      "state down",    "gather",         "reduce",
    "update",  "emit",     "commit",        "commit + emit", "commit + update"};

/// One thing that a lane did, in seconds since the step began.
struct interval {
  lane where;
  activity what;
  int unit;
  double begin, end;
};

/// A step in its steady state, from one check to the next: forward, backward, and whatever ran beside them.
struct timeline {
  double step_time = 0.0;  ///< s; where steps differ their mean, of which `intervals` shows one
  std::vector<interval> intervals;
  std::vector<double> waits;         ///< s that each unit's forward or backward stood still for, on average
  double waited_for_ranks = 0.0;     ///< s of a step in which the device stood still for exchanges alone
  std::array<double, lanes> busy{};  ///< share of the time
  /// Buckets per step.
  double speculated = 0.0;  ///< served before the check
  double committed = 0.0;   ///< brought to their state later, in idle time or with the next step
  double updated = 0.0;     ///< served after the check
  double resent = 0.0;      ///< emitted in vain
};

}  // namespace superoffload::offload
