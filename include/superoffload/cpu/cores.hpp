// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/first_bytes.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace superoffload::cpu {

namespace detail {

/// The start of one of the kernel's files, empty when there is none.
inline std::string text_in(std::string const& path) { return first_bytes_of(path).value_or(""); }

/// The number at the start of `text`, which is cut after it and one separator; -1 when there is none.
std::int64_t take_number(std::string_view& text);

}  // namespace detail

/// Cores that the control groups named in `groups` (the text of /proc/self/cgroup) leave to the process: the
/// lowest limit of each group and its ancestors, rounded up; the largest int when there is no limit. `mount`
/// is where the control groups are mounted.
int cores_by_quota(std::string_view groups, std::string const& mount = "/sys/fs/cgroup");

/// Cores this process may use: its affinity and the quotas of its control groups. At least one.
int usable_cores();

/// Threads of the optimizer for `share` of `cores`, (0, 1], rounded down: at least one, and never all of two
/// or more cores, since a thread must queue the device's work.
int optimizer_threads(double share, int cores);

/// The default number of threads of a pool: SUPEROFFLOAD_NUM_THREADS, or else the usable cores. Throws
/// `error` (bad_input) when the variable is not a whole number between 1 and 4096.
int default_threads();

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/cores_inl.hpp>
#endif
