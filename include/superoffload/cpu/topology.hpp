// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::cpu {

/// A logical processor.
struct processor {
  int id = 0;       ///< as the system numbers it
  int core = 0;     ///< the lowest logical processor of the same physical core
  int sibling = 0;  ///< how many processors of the same core come before it
  int node = 0;     ///< the NUMA node
};

/// A NUMA node that is online, with or without processors and memory.
struct memory_node {
  int id = 0;                    ///< as the system numbers it
  std::int64_t bytes = 0;        ///< of memory; 0: it has none
  std::vector<int> distances{};  ///< to the online nodes, in the order of their ids; 10 is local
};

/// The processors that a process may use, by id, and the memory nodes of its host, by id.
struct topology {
  std::vector<processor> processors;  ///< allowed ones only, by id
  std::vector<memory_node> nodes;     ///< online ones, by id

  /// The number of distinct physical cores.
  [[nodiscard]] int cores() const;
  /// The distance that the kernel reports; unknown distances count as the farthest.
  [[nodiscard]] int distance(int from, int to) const;
  /// Whether any of the usable processors is on the node.
  [[nodiscard]] bool has_processors(int node) const;

  /// The node nearest to node `to` that has both memory and usable processors, the lowest id among equals;
  /// none when no node has both. It is never memory without processors, such as a GPU's own memory that its
  /// host shows as a node. A negative `to` means unknown: then it is the node with most processors.
  [[nodiscard]] std::optional<int> nearest_node(int to) const;

  /// Processors for `threads` threads whose memory is on `node`: those of near nodes first, but one of each
  /// physical core before any second one.
  [[nodiscard]] std::vector<int> processors_near(int node, int threads) const;
};

namespace detail {
/// The numbers of a list such as "0-3,8,10-11". Parsing stops at the first unexpected character.
std::vector<int> parse_list(std::string_view text);
}  // namespace detail

/// The processors that sched_getaffinity gives this process: it includes cpusets and taskset.
std::vector<int> allowed_processors();

/// Reads what `sys`, the path of sysfs, says of the processors `allowed`. Where it says nothing, each of them
/// is a core of its own and all are on one node with memory.
topology read_topology(std::vector<int> const& allowed, std::string const& sys = "/sys");

/// The size of a processor's largest cache, shared or not; 0 where the host does not say.
std::int64_t largest_cache_bytes(int processor, std::string const& sys = "/sys");

/// Where the optimizer runs on the host, and where its state is stored.
struct optimizer_seat {
  std::vector<int> processors;  ///< one for each of the optimizer's threads
  std::optional<int> node;      ///< of its memory; none where no node is known to have memory
};

/// Cores that this process may use, by its affinity and the quotas of its control groups. A second thread of
/// a core does not count. At least one.
int physical_cores();

/// For `threads` threads, or as many as there are processors, near node `node` (the GPU's; negative:
/// unknown).
optimizer_seat seat_near(topology const& host, int node, int threads);

/// For optimizer_threads of the physical cores, or of `cores_left` where a quota leaves fewer, near node
/// `node` (the GPU's; negative: unknown).
optimizer_seat seat_of_optimizer(topology const& host, double share, int node,
                                 int cores_left = std::numeric_limits<int>::max());

/// The processors of each of `ranks` processes that share the host: whole physical cores with all their
/// siblings, equally many for each, neighbours by node. Empty when there are fewer cores than ranks: they run
/// on any core.
std::vector<std::vector<int>> divide_processors(topology const& host, int ranks);

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/topology_inl.hpp>
#endif
