// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/host_group.hpp>
#include <superoffload/offload/planning/machine.hpp>

namespace superoffload::train {

// What one of several ranks has of its host. All of these are calls that every rank of the group makes.

/// Lets this thread, and those that it starts from now on, run on processors that are this rank's alone:
/// where ranks of a host may use the same ones, they are divided between them by whole cores, those of a node
/// between the ranks whose device is at it. `node` is of this rank's device, negative when it is not known.
/// Ranks that somebody else has given processors of their own keep them; where there are fewer cores than
/// ranks, all stay where they are.
/// \returns the processors that this rank shares with no other; none where it shares them.
int bind_cores(comm::host_group const& ranks, int node);

/// Of the cores that this process may use, those that are this rank's: at least one.
int cores_of_rank(comm::host_group const& ranks);

/// The machine with a rank's part of what ranks of one host share: its memory, and its cores.
offload::machine share_of_host(comm::host_group const& ranks, offload::machine m);

/// The machine that all ranks plan for: of each number the worst that any of them has. The name stays.
offload::machine slowest_of(comm::host_group const& ranks, offload::machine m);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/host_share_inl.hpp>
#endif
