// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE double machine::adam_time(adam_task task, int threads, int directions) const {
  auto const i = static_cast<std::size_t>(task);
  double const busy = directions == 1 ? adam.one_way_share : 0.5 * directions;
  double const saturated = (1.0 - busy) * adam.links_idle[i] + busy * adam.links_busy[i];
  double const update = adam.links_idle[static_cast<std::size_t>(adam_task::update)];
  double const by_threads = adam.one_thread / update * adam.links_idle[i] / threads;
  return std::max(saturated, by_threads);
}

namespace detail {
/// Bytes of host memory that a task reads and writes for each of many parameters.
SUPEROFFLOAD_INLINE double adam_traffic(adam_task task, state_layout const& of) {
  constexpr std::int64_t many = std::int64_t{1} << 20;
  auto const each = [](std::size_t bytes) { return static_cast<double>(bytes) / many; };
  double const state = each(of.whole(many)), number = each(of.weights(many));
  switch (task) {
    case adam_task::update:
      return 2.0 * state + 2.0 * number;  // gradient and weight
    case adam_task::speculate:
      return state + 2.0 * number;
    case adam_task::commit:
      return 2.0 * state + number;
    case adam_task::commit_speculate:
    case adam_task::commit_update:
      return 2.0 * state + 3.0 * number;
    case adam_task::update_in_place:
      break;
  }
  return 2.0 * each(of.split(many)) + 3.0 * number;
}
}  // namespace detail

SUPEROFFLOAD_INLINE machine with_state(machine m, state_format format, std::size_t element_bytes) {
  auto const ratio = [&](std::size_t task) {
    auto const of = [&](state_format f) {
      return detail::adam_traffic(static_cast<adam_task>(task), {f, element_bytes});
    };
    return of(format) / of(m.adam.format);
  };
  for (std::size_t i = 0; i < adam_tasks; ++i) {
    m.adam.links_idle[i] *= ratio(i);
    m.adam.links_busy[i] *= ratio(i);
  }
  m.adam.one_thread *= ratio(static_cast<std::size_t>(adam_task::update));
  m.adam.format = format;
  return m;
}

SUPEROFFLOAD_INLINE machine with_gemms_for(machine m, double share) {
  double const tired = std::clamp(2.0 * share - 1.0, 0.0, 1.0);
  double const factor = m.device.rested - (m.device.rested - 1.0) * tired;
  for (auto* const rate : {&m.device.gemms, &m.device.grouped_gemms, &m.device.float8_gemms}) {
    *rate *= factor;
  }
  return m;
}

SUPEROFFLOAD_INLINE machine within_budget(machine m, settings const& s) {
  constexpr auto all = std::numeric_limits<std::size_t>::max();
  auto const available = [](auto const& part) { return part.memory - std::min(part.memory, part.reserve); };
  auto device = s.device_memory.value_or(all), host = s.host_memory.value_or(all);
  if (m.device.is_the_host) {
    device = host = std::min(device, host);
  }
  device = std::min(device, available(m.device));
  host = std::min(host, available(m.host));
  return with_memory(std::move(m), device, host);
}

SUPEROFFLOAD_INLINE machine::peers_part across_hosts(machine::peers_part within, network const& between,
                                                     int ranks) {
  if (ranks <= between.ranks_of_host) {
    return within;
  }
  within.within_hosts = {within.all_gather, within.reduce_scatter, within.latency};
  // A host's ranks share its rate.
  auto const of_rank = between.rate / between.ranks_of_host;
  within.between_hosts = {std::min(within.all_gather, of_rank), std::min(within.reduce_scatter, of_rank),
                          within.latency + between.latency};
  auto const others = static_cast<double>(ranks - 1);
  auto const elsewhere = static_cast<double>(ranks - between.ranks_of_host);
  auto const all_gather = between.rate * others / elsewhere;
  within.all_gather = std::min(within.all_gather, all_gather);
  within.reduce_scatter = std::min(within.reduce_scatter, all_gather / std::min(2, between.ranks_of_host));
  within.latency += between.latency;
  within.ranks_of_host = between.ranks_of_host;
  return within;
}

}  // namespace superoffload::offload
