// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/cpu/resource_group.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace superoffload::cpu {

SUPEROFFLOAD_INLINE std::string join_resource_group(std::string const& name, std::vector<int> const& threads,
                                                    std::string const& mount) {
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
    int const file =
        uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666); });
    if (file < 0) {
      return refused("cannot open " + path);
    }
    auto const line = concat(thread, "\n");  // one thread a write
    auto const written = uninterrupted([&] { return ::write(file, line.data(), line.size()); });
    int const reason = errno;
    ::close(file);
    if (written != static_cast<ssize_t>(line.size())) {
      errno = reason;
      return refused("cannot write " + path);
    }
  }
  return {};
}

}  // namespace superoffload::cpu
