// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/shared_segment.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace superoffload::comm {

struct launch_settings {
  shared_segment::settings shared;  ///< of the ranks: its number is how many are started
  /// Of each rank, the logical processors that it may use; nothing at all: those of this process.
  std::vector<std::vector<int>> processors{};
  /// How long ranks have to end by themselves after one has failed, and how long one may be stopped.
  std::chrono::milliseconds grace = std::chrono::seconds{4};
};

/// Runs `program` with `arguments` (the first one its name) once for each rank, waits for all of them and
/// returns the exit code of the run: 0, or that of the rank that failed first by itself, rank_failed where a
/// signal ended it.
///
/// Ranks find themselves by read_environment() and their region by meet(). They have no standard input. Rank
/// 0 has this process's output and errors; lines of the others come with "rank <n>: " before them. SIGINT,
/// SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are forwarded, and what suspends or continues this process does so to
/// the ranks. When a rank fails, is ended by a signal or stays stopped, one line on standard error says so,
/// the region is failed, and whoever is left after the grace is killed. So are, at the end, processes that
/// ranks have started and left in their group; and ranks whose launcher is killed end with it.
///
/// To be called before the process has other threads, and once at a time: it takes over the signals
/// meanwhile. Throws `error`: cannot_fit as `region`, io_failure when processes cannot be started.
[[nodiscard]] int launch(launch_settings const& settings, std::string const& program,
                         std::vector<std::string> const& arguments);

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/launcher_inl.hpp>
#endif
