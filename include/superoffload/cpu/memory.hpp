// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <sys/mman.h>

namespace superoffload::cpu {

inline constexpr std::size_t alignment = 256;

/// Blocks of this size and more are mapped, in huge pages where the system has them.
inline constexpr std::size_t mapped_bytes = std::size_t{4} << 20;

/// `bytes` of memory, not initialised; null for 0 bytes. Free it by `release_memory` with the same size.
/// Throws `error` (cannot_fit).
inline void* allocate_memory(std::size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  void* memory = nullptr;
  if (bytes >= mapped_bytes) {
    // The system accounts for pages when they are touched; some virtual machines grow only then.
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      memory = nullptr;
    } else {
      madvise(memory, bytes, MADV_HUGEPAGE);
    }
  } else {
    memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  expect(memory != nullptr, exit_code::cannot_fit, "cannot allocate ", bytes,
         " bytes of host memory: expected that much to be free; use a smaller model or batch");
  return memory;
}

inline void release_memory(void* memory, std::size_t bytes) noexcept {
  if (bytes >= mapped_bytes) {
    munmap(memory, bytes);
  } else {
    std::free(memory);
  }
}

/// Host memory that this process may still use, cgroup limits included. Read from files under `root`.
std::size_t available_bytes(std::filesystem::path const& root = "/");

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/memory_inl.hpp>
#endif
