// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace superoffload::offload {

/// What CPU Adam does with a bucket: the step as a whole; new working weights only, the state left as it is;
/// the state only, the weights being out already; an older step's state with weights or state and weights of
/// this one; the step of a bucket whose weights are in host memory, too, and hold half of its masters.
enum class adam_task { update, speculate, commit, commit_speculate, commit_update, update_in_place };
inline constexpr int adam_tasks = 6;

/// Bytes per second each way over the link between device and host.
struct link_rates {
  double down = 0.0;  ///< device to host
  double up = 0.0;
};

/// A machine as the planner sees it, measured or described: one device, its links, and its share of the host.
/// SI units; rates are those that are reached, not those of a data sheet.
struct machine {
  std::string name;

  struct device_part {
    std::size_t memory = 0;      ///< bytes
    std::size_t reserve = 0;     ///< of it, for the driver and what else is not planned
    bool is_the_host = false;    ///< its memory is the host's: what is off the device takes of the same
    double gemms = 0.0;          ///< FLOP/s of matrix products in the element type
    double grouped_gemms = 0.0;  ///< of those by groups of rows; 0: not known
    double attention_forward = 0.0;
    double attention_backward = 0.0;
    double bandwidth = 0.0;   ///< bytes/s, read and written
    double round_trip = 0.0;  ///< s from the end of a kernel to the start of one that the host decided on
  } device;

  struct link_part {
    link_rates alone;                  ///< one direction at a time
    link_rates both;                   ///< both at once
    link_rates beside_adam{1.0, 1.0};  ///< shares of these that are left while CPU Adam runs
    double latency = 0.0;              ///< s of one copy, however small
  } link;

  /// Between ranks that have a device each, all of them at once. Bytes are those that leave a rank.
  struct peers_part {
    double all_gather = 0.0;      ///< bytes/s; 0: not known, and no ranks can be planned for
    double reduce_scatter = 0.0;  ///< bytes/s, with the sum
    double latency = 0.0;         ///< s of one exchange, however small
    double beside_compute = 1.0;  ///< share of these rates that is left while the device computes
    double compute_beside = 1.0;  ///< share of the device's speed that is left meanwhile

    [[nodiscard]] bool known() const { return all_gather > 0.0 && reduce_scatter > 0.0; }
  } peers;

  struct host_part {
    std::size_t memory = 0;   ///< bytes
    std::size_t reserve = 0;  ///< of it, for everything that is not planned
    int cores = 0;
  } host;

  /// Seconds per parameter of each adam_task.
  using adam_seconds = std::array<double, adam_tasks>;
  struct adam_part {
    adam_seconds links_idle{};
    adam_seconds links_busy{};  ///< while copies run both ways
    int threads = 1;            ///< that the above were measured with
    double latency = 0.0;       ///< s of a task, however small
    double one_thread = 0.0;    ///< s per parameter of an update by one thread, links idle
  } adam;

  /// What a process leaves of its host's memory for what no plan counts: program, driver, libraries.
  static constexpr std::size_t host_reserve(std::size_t memory) {
    return std::min(std::size_t{4} << 30, memory / 16);
  }

  /// Seconds per parameter with so many threads while 0, 1 or 2 directions of the link run. Threads add up
  /// until memory is the limit.
  [[nodiscard]] double adam_time(adam_task task, int threads, int directions) const;
};

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/machine_inl.hpp>
#endif
