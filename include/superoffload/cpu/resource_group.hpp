// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace superoffload::cpu {

/// Puts threads, by their ids in the operating system, into the group `name` of the host's cache and memory
/// bandwidth control (resctrl: Intel RDT, AMD QoS, Arm MPAM). The group is created if it does not exist; the
/// host's administrator sets what it may use, in its file `schemata`. Returns an empty string, or one line
/// that says why the threads are not in it: that changes speed, not results.
/// \throws error(bad_input) for an invalid name.
inline std::string join_resource_group(std::string const& name, std::vector<int> const& threads,
                                       std::string const& mount = "/sys/fs/resctrl") {
  expect(!name.empty() && name.front() != '.' && name.find('/') == std::string::npos, exit_code::bad_input,
         "resource group '", printable(name), "': expected the name of a directory in ", mount);
  auto const group = mount + "/" + name;
  auto const refused = [&](std::string const& what) {
    return concat("CPU Adam is not in resource group '", printable(name), "': ", what, ": ",
                  std::strerror(errno), "; it shares caches and memory bandwidth with everything else");
  };
  if (mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) {
    return refused("cannot make " + group);
  }
  auto const path = group + "/tasks";
  for (int const thread : threads) {
    std::FILE* const file = std::fopen(path.c_str(), "ae");  // one thread a write
    if (file == nullptr) {
      return refused("cannot open " + path);
    }
    bool written = std::fprintf(file, "%d\n", thread) > 0;
    written = std::fclose(file) == 0 && written;  // the kernel refuses here
    if (!written) {
      return refused("cannot write " + path);
    }
  }
  return {};
}

}  // namespace superoffload::cpu
