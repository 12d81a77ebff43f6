// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/division.hpp>
#include <superoffload/core/state_format.hpp>
#include <superoffload/offload/scheduling/adam_task.hpp>
#include <superoffload/offload/settings.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace superoffload::offload {

/// Bytes per second of each direction of the link between device and host.
struct link_rates {
  double down = 0.0;  ///< device to host
  double up = 0.0;    ///< host to device
};

/// A machine as the planner sees it, measured or described: one device, its links, and its share of the host.
/// SI units. Rates are reached rates, not those of a data sheet.
struct machine {
  std::string name;  ///< for people

  /// The device and its memory.
  struct device_part {
    std::size_t memory = 0;           ///< bytes
    std::size_t reserve = 0;          ///< of it, for the driver and everything else that is not planned
    bool is_the_host = false;         ///< device and host share one memory
    double gemms = 0.0;               ///< FLOP/s of GEMMs in the element type
    double grouped_gemms = 0.0;       ///< FLOP/s of grouped GEMMs; 0: not known
    double float8_gemms = 0.0;        ///< FLOP/s of GEMMs of numbers of 8 bits; 0: not known
    double attention_forward = 0.0;   ///< FLOP/s
    double attention_backward = 0.0;  ///< FLOP/s
    double bandwidth = 0.0;           ///< bytes/s, reads and writes together
    double round_trip = 0.0;  ///< s from the end of a kernel to the start of one that the host launches then
    double rested = 1.0;      ///< factor of the GEMMs' rates while they take half of the time or less
  } device;                   ///< its rates hold for the element type of the run

  /// The link between device and host. Rates are in bytes/s.
  struct link_part {
    link_rates alone;                  ///< one direction at a time
    link_rates both;                   ///< both directions at once
    link_rates beside_adam{1.0, 1.0};  ///< shares of these rates that remain while CPU Adam runs
    double latency = 0.0;              ///< s of one copy, however small
  } link;                              ///< of this device

  /// Rates of collectives. Bytes are those that leave a rank.
  struct collective_rates {
    double all_gather = 0.0;      ///< bytes/s
    double reduce_scatter = 0.0;  ///< bytes/s, with the sum
    double latency = 0.0;         ///< s of one collective, however small
  };
  /// Collectives between ranks with a device each. Bytes are those that leave a rank.
  struct peers_part {
    double all_gather = 0.0;      ///< bytes/s; 0: not known, so several ranks cannot be planned for
    double reduce_scatter = 0.0;  ///< bytes/s, with the sum
    double latency = 0.0;         ///< s of one collective, however small
    double beside_compute = 1.0;  ///< share of these rates that remains while the device computes
    double compute_beside = 1.0;  ///< share of the device's speed that remains during a collective
    int ranks_of_host = 0;        ///< where the ranks are on several hosts, as many on each; else 0
    /// Then, among the ranks of a host, and among one rank of each while all others do the same.
    collective_rates within_hosts{}, between_hosts{};

    /// Can several ranks be planned for?
    [[nodiscard]] bool known() const { return all_gather > 0.0 && reduce_scatter > 0.0; }
    /// The rates of operations among such ranks; those of all ranks where no other are known.
    [[nodiscard]] collective_rates of(comm::division const& among) const {
      bool const within = among.neighbours > 0 && !among.counterparts && among.neighbours <= ranks_of_host;
      return ranks_of_host > 0 && among.counterparts ? between_hosts
             : within                                ? within_hosts
                                                     : collective_rates{all_gather, reduce_scatter, latency};
    }
  } peers;  ///< of this rank

  /// The share of the host that this device has.
  struct host_part {
    std::size_t memory = 0;   ///< bytes
    std::size_t reserve = 0;  ///< of it, for everything that is not planned
    int cores = 0;            ///< physical ones
  } host;                     ///< shared by no other rank

  /// Seconds per parameter of each adam_task.
  using adam_seconds = std::array<double, adam_tasks>;
  /// CPU Adam, as measured with `threads` threads.
  struct adam_part {
    adam_seconds links_idle{};  ///< while nothing is copied
    adam_seconds links_busy{};  ///< while copies run in both directions
    int threads = 1;            ///< with which the above were measured
    double latency = 0.0;       ///< s of a task, however small
    double one_thread = 0.0;    ///< s per parameter of an update by one thread, with idle links
    state_format format = state_format::float32;  ///< of the state that the above were measured with
    /// Of the difference between links_busy and links_idle, what copies in one direction make.
    double one_way_share = 0.5;
  } adam;  ///< see adam_time() for other numbers of threads

  /// Host memory that no plan counts: program, driver, libraries.
  static constexpr std::size_t host_reserve(std::size_t memory) {
    return std::min(std::size_t{4} << 30, memory / 16);
  }

  /// Seconds per parameter with `threads` threads while 0, 1 or 2 directions of the link are busy. More
  /// threads are faster until memory bandwidth is the limit.
  [[nodiscard]] double adam_time(adam_task task, int threads, int directions) const;
};

/// `m` with these bytes available on the device and on the host. Both are the same if they share one memory.
inline machine with_memory(machine m, std::size_t on_device, std::size_t on_host) {
  m.device.memory = on_device + m.device.reserve;
  m.host.memory = on_host + m.host.reserve;
  return m;
}

/// What joins hosts: a description's `peers.network`.
struct network {
  int ranks_of_host = 1;  ///< so many ranks share it on each host
  double rate = 0.0;      ///< bytes/s that reach a host, and as many that leave it at the same time
  double latency = 0.0;   ///< s of a collective beside that within a host
};
/// The rates of collectives of `ranks` ranks on as many hosts as they need, from those within a host. Per
/// part of p bytes, of n ranks with L on a host, an all-gather brings (n - L) p bytes to each host. A sum
/// that is computed within the hosts first (nccl::options) brings it as many elements, each of twice the
/// bytes as float instead of bfloat16; with one rank on a host as many bytes.
machine::peers_part across_hosts(machine::peers_part within, network const& between, int ranks);

/// `m` with CPU Adam's times for state in a format, beside working weights of `element_bytes`: as measured,
/// or in proportion to the bytes of host memory that a task reads and writes.
machine with_state(machine m, state_format format, std::size_t element_bytes);

/// `m` with the rates of GEMMs that take this share of the device's time. A device that is limited by its
/// power sustains their rates only as described; with half of the time for other work, it runs `rested` times
/// as fast. In between, the factor falls in proportion.
machine with_gemms_for(machine m, double share);

/// `m` with the memory that the settings' budgets leave to a plan. They never add any.
machine within_budget(machine m, settings const& s);

/// May a plan offload activations that need not leave the device? Not where its memory is the host's, and not
/// where nothing is to leave it.
inline bool activations_may_leave(machine const& m, settings const& s) {
  return !m.device.is_the_host && s.how != mode::none;
}

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/machine_inl.hpp>
#endif
