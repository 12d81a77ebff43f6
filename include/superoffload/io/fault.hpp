// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>

namespace superoffload::io {

/// What the functions of file.hpp and directory.hpp ask of the system.
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
  remove
};

/// Tests fail, shorten or end the program at one operation. Called before each of them with its path.
/// \returns 0 to go on, an errno with which the operation fails without being carried out, or
/// `short_transfer`,
///          after which a read or write handles only half of what it was asked for.
using fault_hook = int (*)(operation, std::filesystem::path const&);
inline constexpr int short_transfer = -1;

/// The hook in use; null, the default, means none.
inline std::atomic<fault_hook> fault{nullptr};

inline int injected_fault(operation what, std::filesystem::path const& path) {
  auto const hook = fault.load(std::memory_order_acquire);
  return hook == nullptr ? 0 : hook(what, path);
}

}  // namespace superoffload::io
