// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/memory.hpp>
#include <superoffload/cpu/topology.hpp>
#include <superoffload/offload/planning/adam_probe.hpp>
#include <superoffload/offload/planning/device_probe.hpp>
#include <superoffload/offload/planning/link_probe.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/state/adam_workers.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace superoffload::offload {

/// What is known of this machine without measuring: its free memory and its cores. All times are zero.
template <device_policy D>
machine this_machine(D const& device) {
  machine m;
  m.name = device.description();
  m.device.memory = device.available_bytes();
  m.device.is_the_host = std::derived_from<D, cpu::device>;
  m.host.memory = cpu::available_bytes();
  m.host.reserve = machine::host_reserve(m.host.memory);
  m.device.reserve = m.device.is_the_host ? m.host.reserve : 0;
  m.host.cores = cpu::physical_cores();
  return m;
}

namespace detail {

/// The load of other programs on the host's memory varies, so tasks, and states of the link, take turns and
/// are averaged. Each task runs in all buckets, or in half of them if there are many, and at least six times.
template <device_policy D>
void measure_together(D& device, adam_probe& adam, link_probe<D>& link, std::int64_t of_bucket, machine& m) {
  auto const in_all = adam_tasks * ((6 + adam.buckets() - 1) / adam.buckets());
  auto const laps = adam.buckets() < 48 ? in_all : in_all / 2;
  adam_laps ready{adam, m.adam.latency}, idle = ready, both = ready, one = ready;
  ready.run(0);  // pages and threads get ready
  busy_direction<D> down{device}, up{device}, alone{device};
  for (std::int64_t lap = 0; lap < laps; ++lap) {
    idle.run(lap);
    link.busy_during(&down, &up, [&] { both.run(lap); });
    if (lap < 2 || laps > adam_tasks) {
      bool const downwards = lap % 2 == 0;
      link.busy_during(downwards ? &alone : nullptr, downwards ? nullptr : &alone, [&] { one.run(lap); });
    }
  }
  m.adam.links_idle = idle.per_parameter(of_bucket);
  m.adam.links_busy = both.per_parameter(of_bucket);
  for (std::size_t i = 0; i < adam_tasks; ++i) {
    m.adam.links_busy[i] = std::max(m.adam.links_idle[i], m.adam.links_busy[i]);
  }
  double const slowed = both.of_lap() - idle.of_lap();
  m.adam.one_way_share = slowed > 0.0 ? std::clamp((one.of_lap() - idle.of_lap()) / slowed, 0.0, 1.0) : 0.5;
  auto const share = [&](busy_direction<D> const& direction, double both_ways) {
    return std::clamp(link.rate_of(direction, both_ways) / both_ways, 0.1, 1.0);
  };
  m.link.beside_adam = {share(down, m.link.both.down), share(up, m.link.both.up)};
}

}  // namespace detail

/// Measures the device's rates for kernels in T. Takes some tens of milliseconds.
template <element T, device_policy D>
void measure_device(D& device, probe const& p, machine& m) {
  detail::device_probe<T, D>{device}.measure(p, m);
}

/// Measures the rates of the link and of CPU Adam, alone and together. Takes some seconds for a large state.
template <element T, device_policy D>
void measure_offloading(D& device, probe const& p, machine& m) {
  adam_workers workers{device.pci_address(), cpu::optimizer_threads(p.cores_share, m.host.cores), {}};
  // All of the state, up to a limit: parts of a host's memory are not equally fast.
  auto const window = std::min(std::size_t{32} << 30, m.host.memory / 4);
  detail::adam_probe adam{workers, device.host_account(), p.bucket, p.state, p.format, sizeof(T), window};
  auto const bytes = static_cast<std::size_t>(p.bucket) * sizeof(T);
  auto const most = std::min(static_cast<std::size_t>(p.state) * sizeof(T), m.host.memory / 8);
  detail::link_probe<D> link{device, bytes, most / bytes};
  link.measure(m.link);
  m.adam.threads = workers.threads().size();
  m.adam.format = p.format;
  m.adam.latency = adam.latency();
  detail::measure_together(device, adam, link, p.bucket, m);
  // Derived from the measured threads: plans use no other number of threads.
  m.adam.one_thread = m.adam.links_idle[static_cast<std::size_t>(adam_task::update)] * m.adam.threads;
}

}  // namespace superoffload::offload
