// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>

namespace superoffload::io {

/// The operations of file.hpp and directory.hpp on the system.
enum class operation {
  open,
  read,
  write,
  preallocate,
  sync,
  close,
  make_directory,
  rename,
  exchange,
  remove,
  list
};

/// Lets tests fail, shorten or end the program at an operation. Called before each operation, with its path.
/// \returns 0 to go on, an errno with which the operation fails without being executed, or `short_transfer`,
/// after which a read or write transfers only half of the bytes.
using fault_hook = int (*)(operation, std::filesystem::path const&);
inline constexpr int short_transfer = -1;

/// The hook in use; null, the default, means none.
inline std::atomic<fault_hook> fault{nullptr};

inline int injected_fault(operation what, std::filesystem::path const& path) {
  auto const hook = fault.load(std::memory_order_acquire);
  return hook == nullptr ? 0 : hook(what, path);
}

}  // namespace superoffload::io
