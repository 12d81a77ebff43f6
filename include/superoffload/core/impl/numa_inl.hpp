// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/first_bytes.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/numa.hpp>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace superoffload {

SUPEROFFLOAD_INLINE int node_of_pci(std::string_view id, std::string const& sys) {
  std::string name;
  for (char const c : id) { name += static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
  auto const domain = name.find(':');
  if (domain != std::string::npos && domain > 4) {
    name.erase(0, domain - 4);
  }
  if (name.find_first_not_of("0123456789abcdef:.") != std::string::npos) {
    return -1;
  }
  std::istringstream text{first_bytes_of(sys + "/bus/pci/devices/" + name + "/numa_node").value_or("")};
  int node = -1;
  return text >> node ? node : -1;
}

SUPEROFFLOAD_INLINE std::optional<int> node_beside(std::string_view id, std::string const& sys) {
  auto const online = first_bytes_of(sys + "/devices/system/node/online").value_or("");
  int const node = node_of_pci(id, sys);
  return node >= 0 && online.find_first_of(",-") != std::string::npos ? std::optional{node} : std::nullopt;
}

SUPEROFFLOAD_INLINE int prefer_node(void* memory, std::size_t bytes, int node) noexcept {
  constexpr int preferred = 1;  // MPOL_PREFERRED of <numaif.h>, a header of libnuma
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  unsigned long mask[1024 / bits]{};
  if (node < 0 || node >= 1024) {
    return EINVAL;
  }
  mask[static_cast<std::size_t>(node) / bits] = 1UL << (static_cast<std::size_t>(node) % bits);
  return syscall(SYS_mbind, memory, bytes, preferred, mask, 1024UL + 1, 0U) == 0 ? 0 : errno;
}

}  // namespace superoffload
