// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/numa.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <utility>
#include <vector>

namespace superoffload {

/// Logs a line as a warning.
inline void warn(std::string const& line) { log_line(log_level::warning, line); }

/// Blocks of host memory whose pages are locked ("pinned"), so that a device can copy them by itself. Memory
/// that the system does not lock is ordinary memory; a warning says so once. Several threads may use it at
/// once.
///
/// `Locks` is how a device locks memory. Its functions must not throw:
///   bool lock(void* memory, std::size_t bytes);   whole pages that have been written to
///   void unlock(void* memory);
///   void* allocate(std::size_t bytes);            memory that is locked already; null: refused
///   void release(void* memory);                   frees what allocate gave
template <class Locks>
class pinned_memory {
public:
  /// Blocks of this size and more are mapped and then locked: several times faster than a driver's
  /// allocation.
  static constexpr std::size_t mapped_bytes = std::size_t{4} << 20;

  /// `node`: the NUMA node for large blocks. Where the system does not allow the choice, a warning says so
  /// once.
  explicit pinned_memory(Locks locks = {}, void (*say)(std::string const&) = warn,
                         std::optional<int> node = std::nullopt)
      : locks_{std::move(locks)}, say_{say}, node_{node} {}

  /// Aligned to 256 bytes or more, not initialised. \throws error(cannot_fit) when there is no memory.
  [[nodiscard]] void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    origin from = origin::mapped;
    if (bytes >= mapped_bytes && (memory = map(bytes)) != nullptr) {
      touch(static_cast<std::byte*>(memory), bytes);
      if (!locks_.lock(memory, bytes)) {
        munmap(std::exchange(memory, nullptr), bytes);
      }
    }
    if (memory == nullptr && (memory = locks_.allocate(bytes)) != nullptr) {
      from = origin::driver;
    }
    if (memory == nullptr && (memory = map(bytes)) != nullptr) {
      from = origin::pageable;
    }
    expect(memory != nullptr, exit_code::cannot_fit, "cannot allocate ", bytes,
           " bytes of host memory: expected that much to be free; use a smaller model or batch");
    std::lock_guard const lock{mutex_};
    blocks_.emplace(memory, from);
    if (from == origin::pageable && !std::exchange(said_, true)) {
      say_(concat(bytes, " bytes of host memory could not be page-locked, ", limit(),
                  ": copies of it are several times slower and keep the thread that queues them; raise the "
                  "limit of locked memory (ulimit -l, a container's memlock)"));
    }
    return memory;
  }

  /// `bytes` as passed to allocate.
  void release(void* memory, std::size_t bytes) noexcept {
    std::unique_lock lock{mutex_};
    auto const block = blocks_.find(memory);
    auto const from = block->second;
    blocks_.erase(block);
    lock.unlock();
    if (from == origin::driver) {
      locks_.release(memory);
      return;
    }
    if (from == origin::mapped) {
      locks_.unlock(memory);
    }
    munmap(memory, bytes);
  }

  /// How many bytes this process can lock. RLIMIT_MEMLOCK does not bind every driver, nor a process with
  /// CAP_IPC_LOCK; so a lock is tried with the limit set to zero for a moment. No other thread may allocate
  /// meanwhile.
  [[nodiscard]] std::size_t lockable_bytes() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
      return std::numeric_limits<std::size_t>::max();
    }
    void* const memory = map(mapped_bytes);
    if (memory == nullptr) {
      return limit.rlim_cur;
    }
    touch(static_cast<std::byte*>(memory), mapped_bytes);
    rlimit const none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_MEMLOCK, &none);
    bool const locks = locks_.lock(memory, mapped_bytes);
    setrlimit(RLIMIT_MEMLOCK, &limit);
    if (locks) {
      locks_.unlock(memory);
    }
    munmap(memory, mapped_bytes);
    return locks ? std::numeric_limits<std::size_t>::max() : limit.rlim_cur;
  }

private:
  enum class origin { mapped, driver, pageable };

  void* map(std::size_t bytes) {
    // The system accounts for pages when they are touched; some virtual machines grow only then.
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      return nullptr;
    }
    madvise(memory, bytes, MADV_HUGEPAGE);
    if (int const refusal = node_ ? prefer_node(memory, bytes, *node_) : 0; refusal != 0) {
      std::lock_guard const lock{mutex_};
      if (!std::exchange(said_elsewhere_, true)) {
        say_(concat("pinned memory could not be bound to node ", *node_, " (", std::strerror(refusal),
                    "): it comes from the nodes of the threads that touch it first"));
      }
    }
    return memory;
  }

  /// Touches every page of a mapping, on a few threads when it is large.
  static void touch(std::byte* memory, std::size_t bytes) {
    constexpr std::size_t page = 4096;
    constexpr std::size_t worth_a_thread = std::size_t{256} << 20;
    auto const threads = std::clamp<std::size_t>(bytes / worth_a_thread, 1,
                                                 std::max(1U, std::thread::hardware_concurrency() / 2));
    auto const piece = (bytes / threads + page) / page * page;
    auto const touch_piece = [=](std::size_t begin) {
      for (auto at = begin; at < std::min(bytes, begin + piece); at += page) { memory[at] = std::byte{0}; }
    };
    std::vector<std::jthread> workers;
    for (std::size_t begin = piece; begin < bytes; begin += piece) {
      workers.emplace_back(touch_piece, begin);
    }
    touch_piece(0);
  }

  static std::string limit() {
    rlimit most{};
    if (getrlimit(RLIMIT_MEMLOCK, &most) != 0 || most.rlim_cur == RLIM_INFINITY) {
      return "though this process has no limit";
    }
    return concat("the limit of this process is ", most.rlim_cur, " bytes");
  }

  Locks locks_;
  void (*say_)(std::string const&);
  std::optional<int> node_;
  std::mutex mutex_;
  std::map<void*, origin> blocks_;
  bool said_ = false;            // warned that memory is not locked
  bool said_elsewhere_ = false;  // warned that it may come from other nodes
};

}  // namespace superoffload
