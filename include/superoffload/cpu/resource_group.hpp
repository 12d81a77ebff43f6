// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace superoffload::cpu {

/// Puts threads, by their ids in the operating system, into the group `name` of the host's cache and memory
/// bandwidth control (resctrl: Intel RDT, AMD QoS, Arm MPAM). The group is created if it does not exist; the
/// host's administrator sets what it may use, in its file `schemata`. Returns an empty string, or one line
/// that says why the threads are not in it: that changes speed, not results.
/// \throws error(bad_input) for an invalid name.
std::string join_resource_group(std::string const& name, std::vector<int> const& threads,
                                std::string const& mount = "/sys/fs/resctrl");

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/resource_group_inl.hpp>
#endif
