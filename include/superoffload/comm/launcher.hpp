// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/shared_segment.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace superoffload::comm {

/// How launch() starts the ranks of a run on this host.
struct launch_settings {
  shared_segment::settings shared;  ///< shared.ranks is how many are started
  /// For each rank, the logical processors that it may use; empty: those of this process.
  std::vector<std::vector<int>> processors{};
  /// How long the others have to end by themselves after a rank has failed, and how long a rank may be
  /// stopped.
  std::chrono::milliseconds grace = std::chrono::seconds{4};
};

/// Runs `program` with `arguments` (the first one its name) once for each rank, waits for all of them and
/// returns the exit code of the run: 0, or that of the rank that failed first on its own, or rank_failed
/// where a signal ended it, or 128 and the number of SIGINT, SIGTERM or SIGHUP if this process got it before
/// all ranks were started or could answer it.
///
/// A rank finds its number by read_environment() and the segment by rendezvous(). Ranks have no standard
/// input. Rank 0 has this process's output and errors; lines of the others are prefixed with "rank <n>: ".
/// SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are forwarded, and suspending or continuing this process does
/// the same to the ranks. When a rank fails, is ended by a signal or stays stopped, one line on standard
/// error says so, the group is marked failed, and ranks that still run after the grace are killed. At the
/// end, processes that ranks have left behind in their process group are killed, too. Ranks whose launcher is
/// killed end with it.
///
/// Call it before the process has other threads, and once at a time: it takes over the signals meanwhile.
/// Throws `error`: cannot_fit as `shared_segment`, io_failure when processes cannot be started.
[[nodiscard]] int launch(launch_settings const& settings, std::string const& program,
                         std::vector<std::string> const& arguments);

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/launcher_inl.hpp>
#endif
