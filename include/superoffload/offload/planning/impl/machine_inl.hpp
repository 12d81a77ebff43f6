// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/machine.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE double machine::adam_time(adam_task task, int threads, int directions) const {
  auto const i = static_cast<std::size_t>(task);
  double const busy = 0.5 * directions;
  double const saturated = (1.0 - busy) * adam.links_idle[i] + busy * adam.links_busy[i];
  double const update = adam.links_idle[static_cast<std::size_t>(adam_task::update)];
  double const by_threads = adam.one_thread / update * adam.links_idle[i] / threads;
  return std::max(saturated, by_threads);
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

}  // namespace superoffload::offload
