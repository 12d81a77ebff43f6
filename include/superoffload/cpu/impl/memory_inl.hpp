// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/first_bytes.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/memory.hpp>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>

namespace superoffload::cpu {
namespace detail {

inline constexpr auto unlimited = std::numeric_limits<std::size_t>::max();

/// The first number in a file; unlimited for "max", a missing file or anything else.
SUPEROFFLOAD_INLINE std::size_t number_in(std::filesystem::path const& path) {
  std::istringstream text{first_bytes_of(path.string()).value_or("")};
  std::size_t value = 0;
  return text >> value ? value : unlimited;
}

SUPEROFFLOAD_INLINE std::size_t limit_less_use(std::filesystem::path const& limit_path,
                                               std::filesystem::path const& use_path) {
  auto const limit = number_in(limit_path);
  auto const use = number_in(use_path);
  if (limit == unlimited || use == unlimited) {
    return unlimited;
  }
  return limit > use ? limit - use : 0;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::size_t available_bytes(std::filesystem::path const& root) {
  auto available = detail::unlimited;
  std::istringstream meminfo{first_bytes_of((root / "proc/meminfo").string()).value_or("")};
  for (std::string name; meminfo >> name;) {
    std::size_t kibibytes = 0;
    if (name == "MemAvailable:" && meminfo >> kibibytes) {
      available = kibibytes * 1024;
    }
  }
  auto const groups = root / "sys/fs/cgroup";
  return std::min({available, detail::limit_less_use(groups / "memory.max", groups / "memory.current"),
                   detail::limit_less_use(groups / "memory/memory.limit_in_bytes",
                                          groups / "memory/memory.usage_in_bytes")});
}

}  // namespace superoffload::cpu
