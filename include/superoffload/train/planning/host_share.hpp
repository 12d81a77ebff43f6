// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/host_group.hpp>
#include <superoffload/offload/planning/machine.hpp>

#include <cstddef>
#include <vector>

namespace superoffload::train {

// The share of a host that one of several ranks has. Every rank of the group must make each of these calls.

/// Binds this thread, and threads that it starts later, to processors of this rank alone. Ranks of a host
/// that may use the same processors divide them by whole cores; the cores of a node go to the ranks whose
/// device is at it. `node` is this rank's device's node, negative if unknown. Ranks that were started with
/// their own processors keep them. With fewer cores than ranks, nothing is bound.
/// \returns the number of processors that are this rank's alone; 0 if it shares them.
int bind_cores(comm::host_group const& ranks, int node);

/// This rank's share of the cores that the process may use: at least one.
int cores_of_rank(comm::host_group const& ranks);

/// How many ranks each host has, if the ranks are on several, as many consecutive ones on each; else 0.
int ranks_of_host(comm::host_group const& ranks);
/// The same for ranks with these hosts.
int ranks_of_host(std::vector<std::size_t> const& hosts);

/// The ranks that are on this one's host, in order.
std::vector<int> ranks_of_this_host(comm::host_group const& ranks);

/// The machine with a rank's share of its host's memory and cores.
offload::machine share_of_host(comm::host_group const& ranks, offload::machine m);

/// The machine that all ranks plan for: each number is the worst of all ranks. The name stays.
offload::machine slowest_of(comm::host_group const& ranks, offload::machine m);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/host_share_inl.hpp>
#endif
