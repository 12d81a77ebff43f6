// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/topology.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace superoffload::cpu {
namespace detail {

SUPEROFFLOAD_INLINE std::vector<int> parse_list(std::string_view text) {
  constexpr std::int64_t most = 1 << 20;
  std::vector<int> numbers;
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0) {
    auto const entry = text.substr(0, text.find_first_of(",\n"));
    bool const ranges = entry.find('-') != std::string_view::npos;
    auto const first = take_number(text);
    auto const last = ranges ? take_number(text) : first;
    if (first < 0 || last < first || last > most) {
      break;
    }
    for (auto i = first; i <= last; ++i) { numbers.push_back(static_cast<int>(i)); }
  }
  return numbers;
}

/// MemTotal in a node's meminfo: "Node 0 MemTotal:  131072 kB".
SUPEROFFLOAD_INLINE std::int64_t memory_in(std::string const& meminfo) {
  constexpr std::string_view key = "MemTotal:";
  auto const at = meminfo.find(key);
  if (at == std::string::npos) {
    return 0;
  }
  auto rest = std::string_view{meminfo}.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  return std::max<std::int64_t>(0, take_number(rest)) * 1024;
}

}  // namespace detail

SUPEROFFLOAD_INLINE int topology::cores() const {
  return static_cast<int>(
      std::count_if(processors.begin(), processors.end(), [](auto const& p) { return p.sibling == 0; }));
}

SUPEROFFLOAD_INLINE int topology::distance(int from, int to) const {
  for (auto const& node : nodes) {
    if (node.id == from) {
      auto const at = std::find_if(nodes.begin(), nodes.end(), [&](auto const& n) { return n.id == to; });
      auto const index = static_cast<std::size_t>(at - nodes.begin());
      return index < node.distances.size() ? node.distances[index] : 255;
    }
  }
  return from == to ? 10 : 255;
}

SUPEROFFLOAD_INLINE bool topology::has_processors(int node) const {
  return std::any_of(processors.begin(), processors.end(), [&](auto const& p) { return p.node == node; });
}

SUPEROFFLOAD_INLINE std::optional<int> topology::nearest_node(int to) const {
  std::optional<int> best;
  auto const rank = [&](int node) {
    return to >= 0 ? distance(to, node)
                   : -static_cast<int>(std::count_if(processors.begin(), processors.end(),
                                                     [&](auto const& p) { return p.node == node; }));
  };
  for (auto const& node : nodes) {
    if (node.bytes > 0 && has_processors(node.id) && (!best || rank(node.id) < rank(*best))) {
      best = node.id;
    }
  }
  return best;
}

SUPEROFFLOAD_INLINE std::vector<int> topology::processors_near(int node, int threads) const {
  auto ordered = processors;
  std::stable_sort(ordered.begin(), ordered.end(), [&](auto const& a, auto const& b) {
    return std::pair{a.sibling, distance(node, a.node)} < std::pair{b.sibling, distance(node, b.node)};
  });
  std::vector<int> ids;
  for (auto const& p : ordered) {
    if (std::ssize(ids) < threads) {
      ids.push_back(p.id);
    }
  }
  return ids;
}

SUPEROFFLOAD_INLINE std::vector<int> allowed_processors() {
  cpu_set_t set[8];  // 8192 processors
  std::vector<int> ids;
  if (sched_getaffinity(0, sizeof set, set) == 0) {
    for (int id = 0; id < static_cast<int>(8 * sizeof set); ++id) {
      if (CPU_ISSET_S(static_cast<std::size_t>(id), sizeof set, set)) {
        ids.push_back(id);
      }
    }
  }
  if (ids.empty()) {
    for (int id = 0; id < static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); ++id) {
      ids.push_back(id);
    }
  }
  return ids;
}

SUPEROFFLOAD_INLINE topology read_topology(std::vector<int> const& allowed, std::string const& sys) {
  topology found;
  auto const nodes = sys + "/devices/system/node";
  std::vector<std::pair<int, std::vector<int>>> processors_of;
  for (int const id : detail::parse_list(detail::text_in(nodes + "/online"))) {
    auto const folder = nodes + "/node" + std::to_string(id);
    memory_node node{.id = id, .bytes = detail::memory_in(detail::text_in(folder + "/meminfo"))};
    auto const text = detail::text_in(folder + "/distance");
    for (std::string_view rest{text}; !rest.empty();) {
      auto const distance = detail::take_number(rest);
      if (distance < 0) {
        break;
      }
      node.distances.push_back(static_cast<int>(distance));
    }
    processors_of.emplace_back(id, detail::parse_list(detail::text_in(folder + "/cpulist")));
    found.nodes.push_back(std::move(node));
  }
  if (found.nodes.empty()) {
    found.nodes.push_back({.id = 0, .bytes = 1, .distances = {10}});
  }
  for (int const id : allowed) {
    auto const about = sys + "/devices/system/cpu/cpu" + std::to_string(id) + "/topology/";
    auto const of_core = detail::parse_list(detail::text_in(about + "thread_siblings_list"));
    processor p{.id = id, .core = of_core.empty() ? id : of_core.front(), .node = found.nodes.front().id};
    for (auto const& [node, ids] : processors_of) {
      if (std::find(ids.begin(), ids.end(), id) != ids.end()) {
        p.node = node;
      }
    }
    p.sibling = static_cast<int>(std::count_if(found.processors.begin(), found.processors.end(),
                                               [&](auto const& earlier) { return earlier.core == p.core; }));
    found.processors.push_back(p);
  }
  return found;
}

SUPEROFFLOAD_INLINE std::int64_t largest_cache_bytes(int processor, std::string const& sys) {
  std::int64_t largest = 0;
  for (int level = 0; level < 8; ++level) {
    auto const text = detail::text_in(sys + "/devices/system/cpu/cpu" + std::to_string(processor) +
                                      "/cache/index" + std::to_string(level) + "/size");
    auto const digits = std::min(text.find_first_not_of("0123456789"), text.size());
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + digits, number);
    auto const unit = text.compare(digits, 1, "M") == 0 ? 20 : text.compare(digits, 1, "K") == 0 ? 10 : 0;
    largest = std::max(largest, std::clamp<std::int64_t>(number, 0, std::int64_t{1} << 40) << unit);
  }
  return largest;
}

SUPEROFFLOAD_INLINE int physical_cores() {
  return std::max(1, std::min(read_topology(allowed_processors()).cores(),
                              cores_by_quota(detail::text_in("/proc/self/cgroup"))));
}

SUPEROFFLOAD_INLINE optimizer_seat seat_near(topology const& host, int node, int threads) {
  auto const memory = host.nearest_node(node);
  return {host.processors_near(memory.value_or(node), threads), memory};
}

SUPEROFFLOAD_INLINE optimizer_seat seat_of_optimizer(topology const& host, double share, int node,
                                                     int cores_left) {
  return seat_near(host, node, optimizer_threads(share, std::min(host.cores(), cores_left)));
}

SUPEROFFLOAD_INLINE std::vector<std::vector<int>> divide_processors(topology const& host, int ranks) {
  std::vector<std::pair<int, int>> cores;  // node, core
  for (auto const& p : host.processors) {
    if (p.sibling == 0) {
      cores.emplace_back(p.node, p.core);
    }
  }
  auto const each = std::ssize(cores) / std::max(1, ranks);
  if (each == 0) {
    return {};
  }
  std::sort(cores.begin(), cores.end());
  std::vector<std::vector<int>> divided(static_cast<std::size_t>(ranks));
  for (auto const& p : host.processors) {
    auto const at = std::find(cores.begin(), cores.end(), std::pair{p.node, p.core}) - cores.begin();
    if (at < each * ranks) {
      divided[static_cast<std::size_t>(at / each)].push_back(p.id);
    }
  }
  return divided;
}

}  // namespace superoffload::cpu
