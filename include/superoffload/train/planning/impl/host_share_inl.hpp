// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/boot_id.hpp>
#include <superoffload/core/host_name.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/topology.hpp>
#include <superoffload/train/planning/host_share.hpp>

#include <algorithm>
#include <cstdint>
#include <sched.h>
#include <string_view>
#include <type_traits>
#include <vector>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE std::uint64_t hash_of(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325U) {
  for (char const c : bytes) { hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U; }
  return hash;
}

/// Where a rank runs. Ranks with equal numbers are on one host, and may use the same processors there.
struct whereabouts {
  std::uint64_t host = 0;
  std::uint64_t processors = 0;
  int node = -1;  ///< of its device; negative: unknown

  [[nodiscard]] bool beside(whereabouts const& other) const {
    return host == other.host && processors == other.processors;
  }
};

SUPEROFFLOAD_INLINE std::vector<whereabouts> all_of(comm::host_group const& ranks, int node) {
  auto const allowed = cpu::allowed_processors();
  whereabouts const own{
      hash_of(boot_id(), hash_of(host_name())),
      hash_of({reinterpret_cast<char const*>(allowed.data()), allowed.size() * sizeof(int)}), node};
  std::vector<whereabouts> all(static_cast<std::size_t>(ranks.ranks()));
  ranks.gather(&own, all.data(), sizeof own);
  return all;
}

/// The processors of `host` for rank `index` of those that share it; their devices are at `nodes`.
SUPEROFFLOAD_INLINE std::vector<int> processors_of(cpu::topology const& host, std::vector<int> const& nodes,
                                                   std::size_t index) {
  std::vector<int> nearest;
  for (int const node : nodes) { nearest.push_back(node < 0 ? -1 : host.nearest_node(node).value_or(-1)); }
  if (std::find(nearest.begin(), nearest.end(), -1) == nearest.end()) {
    auto of_node = host;
    std::erase_if(of_node.processors, [&](auto const& p) { return p.node != nearest[index]; });
    auto const sharers = std::count(nearest.begin(), nearest.end(), nearest[index]);
    auto const before =
        std::count(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(index), nearest[index]);
    auto const divided = cpu::divide_processors(of_node, static_cast<int>(sharers));
    if (!divided.empty()) {
      return divided[static_cast<std::size_t>(before)];
    }
  }
  auto const divided = cpu::divide_processors(host, static_cast<int>(nodes.size()));
  return divided.empty() ? std::vector<int>{} : divided[index];
}

/// The number of ranks that may use the same processors as this one.
SUPEROFFLOAD_INLINE int sharers_of(comm::host_group const& ranks) {
  auto const all = all_of(ranks, -1);
  auto const& own = all[static_cast<std::size_t>(ranks.rank())];
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](auto const& w) { return w.beside(own); }));
}

}  // namespace detail

SUPEROFFLOAD_INLINE int bind_cores(comm::host_group const& ranks, int node) {
  auto const all = detail::all_of(ranks, node);
  auto const rank = static_cast<std::size_t>(ranks.rank());
  auto const& own = all[rank];
  std::vector<int> nodes;
  std::size_t index = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].beside(own)) {
      index += r < rank ? 1 : 0;
      nodes.push_back(all[r].node);
    }
  }
  auto const allowed = cpu::allowed_processors();
  if (nodes.size() == 1) {
    return static_cast<int>(allowed.size());
  }
  auto const mine = detail::processors_of(cpu::read_topology(allowed), nodes, index);
  if (mine.empty()) {
    return 0;
  }
  std::vector<cpu_set_t> set(8);  // 8192 processors
  auto const bytes = set.size() * sizeof(cpu_set_t);
  CPU_ZERO_S(bytes, set.data());
  for (int const id : mine) { CPU_SET_S(static_cast<std::size_t>(id), bytes, set.data()); }
  return ::sched_setaffinity(0, bytes, set.data()) == 0 ? static_cast<int>(mine.size()) : 0;
}

SUPEROFFLOAD_INLINE int cores_of_rank(comm::host_group const& ranks) {
  return std::max(1, cpu::usable_cores() / detail::sharers_of(ranks));
}

SUPEROFFLOAD_INLINE int ranks_of_host(std::vector<std::size_t> const& hosts) {
  auto const each = static_cast<std::size_t>(
      std::find_if(hosts.begin(), hosts.end(), [&](std::size_t h) { return h != hosts.front(); }) -
      hosts.begin());
  if (each == hosts.size() || hosts.size() % each != 0) {
    return 0;
  }
  for (std::size_t r = 1; r < hosts.size(); ++r) {
    if ((r % each == 0) == (hosts[r] == hosts[r - 1])) {
      return 0;
    }
  }
  return static_cast<int>(each);
}
SUPEROFFLOAD_INLINE int ranks_of_host(comm::host_group const& ranks) {
  std::vector<std::size_t> hosts;
  for (auto const& one : detail::all_of(ranks, -1)) { hosts.push_back(one.host); }
  return ranks_of_host(hosts);
}

SUPEROFFLOAD_INLINE std::vector<int> ranks_of_this_host(comm::host_group const& ranks) {
  auto const all = detail::all_of(ranks, -1);
  auto const& own = all[static_cast<std::size_t>(ranks.rank())];
  std::vector<int> here;
  for (int r = 0; r < ranks.ranks(); ++r) {
    if (all[static_cast<std::size_t>(r)].host == own.host) {
      here.push_back(r);
    }
  }
  return here;
}

SUPEROFFLOAD_INLINE offload::machine share_of_host(comm::host_group const& ranks, offload::machine m) {
  if (ranks.ranks() == 1) {
    return m;
  }
  auto const neighbours = ranks_of_this_host(ranks).size();
  m.host.memory /= neighbours;
  m.host.reserve =
      offload::machine::host_reserve(m.host.memory);  // each process has its own driver and libraries
  if (m.device.is_the_host) {
    m.device.memory /= neighbours;
    m.device.reserve = m.host.reserve;
  }
  m.host.cores = std::max(1, m.host.cores / detail::sharers_of(ranks));
  return m;
}

SUPEROFFLOAD_INLINE offload::machine slowest_of(comm::host_group const& ranks, offload::machine m) {
  struct numbers {
    offload::machine::device_part device;
    offload::machine::link_part link;
    offload::machine::peers_part peers;
    offload::machine::host_part host;
    offload::machine::adam_part adam;
  };
  static_assert(std::is_trivially_copyable_v<numbers>);
  numbers const own{m.device, m.link, m.peers, m.host, m.adam};
  std::vector<numbers> all(static_cast<std::size_t>(ranks.ranks()), own);
  ranks.gather(&own, all.data(), sizeof own);
  auto const least = [](auto& to, auto const& from) { to = std::min(to, from); };
  auto const most = [](auto& to, auto const& from) { to = std::max(to, from); };
  for (auto const& other : all) {
    least(m.device.memory, other.device.memory);
    most(m.device.reserve, other.device.reserve);
    least(m.device.gemms, other.device.gemms);
    least(m.device.rested, other.device.rested);
    least(m.device.grouped_gemms, other.device.grouped_gemms);
    least(m.device.float8_gemms, other.device.float8_gemms);
    least(m.device.attention_forward, other.device.attention_forward);
    least(m.device.attention_backward, other.device.attention_backward);
    least(m.device.bandwidth, other.device.bandwidth);
    most(m.device.round_trip, other.device.round_trip);
    using link = offload::machine::link_part;
    for (auto const rate : {&link::alone, &link::both, &link::beside_adam}) {
      least((m.link.*rate).down, (other.link.*rate).down);
      least((m.link.*rate).up, (other.link.*rate).up);
    }
    most(m.link.latency, other.link.latency);
    least(m.peers.all_gather, other.peers.all_gather);
    least(m.peers.reduce_scatter, other.peers.reduce_scatter);
    most(m.peers.latency, other.peers.latency);
    least(m.peers.beside_compute, other.peers.beside_compute);
    least(m.peers.compute_beside, other.peers.compute_beside);
    using peers = offload::machine::peers_part;
    for (auto const rates : {&peers::within_hosts, &peers::between_hosts}) {
      least((m.peers.*rates).all_gather, (other.peers.*rates).all_gather);
      least((m.peers.*rates).reduce_scatter, (other.peers.*rates).reduce_scatter);
      most((m.peers.*rates).latency, (other.peers.*rates).latency);
    }
    least(m.host.memory, other.host.memory);
    most(m.host.reserve, other.host.reserve);
    least(m.host.cores, other.host.cores);
    for (std::size_t i = 0; i < offload::adam_tasks; ++i) {
      most(m.adam.links_idle[i], other.adam.links_idle[i]);
      most(m.adam.links_busy[i], other.adam.links_busy[i]);
    }
    most(m.adam.one_way_share, other.adam.one_way_share);
    least(m.adam.threads, other.adam.threads);
    most(m.adam.latency, other.adam.latency);
    most(m.adam.one_thread, other.adam.one_thread);
  }
  return m;
}

}  // namespace superoffload::train
