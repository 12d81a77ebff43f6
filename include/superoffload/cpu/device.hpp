// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/memory_account.hpp>
#include <superoffload/cpu/memory.hpp>
#include <superoffload/cpu/stream.hpp>
#include <superoffload/cpu/threads.hpp>

#include <cstddef>
#include <limits>
#include <string>

namespace superoffload::cpu {

/// The processor as a device: its streams are threads, its memory is the host's. All streams of a device
/// share one pool of threads for the work inside their tasks.
class device {
public:
  using policy_category = category::device;  ///< see core/policy.hpp
  using stream = cpu::stream;                ///< a thread with a queue
  using event = cpu::event;                  ///< a point in a stream
  using timed_event = cpu::timed_event;      ///< an event that knows when it was reached

  /// `threads` as for `thread_pool`.
  explicit device(int threads = 0) : threads_{threads} {}

  static std::string name() { return "cpu"; }                               ///< in plans and messages
  static constexpr std::size_t logits_chunk_bytes = std::size_t{64} << 20;  ///< see nn::head_loss_function
  static constexpr std::size_t gemm_workspace_bytes = 0;                    ///< GEMMs of the host need none
  static constexpr double flops_per_byte = 8.0;  ///< rough; decides what to recompute first
  static constexpr double settling_time = 0.0;   ///< measurements begin at once

  /// Its name and the size of its pool, such as "cpu with 8 threads".
  [[nodiscard]] std::string description() const {
    return concat(name(), " with ", threads_.size(), threads_.size() == 1 ? " thread" : " threads");
  }

  [[nodiscard]] thread_pool& threads() noexcept { return threads_; }  ///< for the work inside of tasks

  /// Of the host; cgroup limits are included.
  [[nodiscard]] static std::size_t available_bytes() { return cpu::available_bytes(); }

  /// Aligned to 256 bytes and not initialised; null for 0 bytes. Throws `error` (cannot_fit).
  [[nodiscard]] void* allocate(std::size_t bytes) { return allocate_for(device_account_, bytes); }
  /// Releases memory of allocate(), of the same size; nothing for null. No queued work may use it.
  void release(void* memory, std::size_t bytes) noexcept { release_from(device_account_, memory, bytes); }

  /// The same, counted as host memory.
  [[nodiscard]] void* allocate_host(std::size_t bytes) { return allocate_for(host_account_, bytes); }
  /// Releases memory of allocate_host(), of the same size; nothing for null. No queued work may use it.
  void release_host(void* memory, std::size_t bytes) noexcept { release_from(host_account_, memory, bytes); }

  /// Counts allocate_host(), and what other owners add.
  [[nodiscard]] memory_account& host_account() noexcept { return host_account_; }
  static std::string pci_address() { return {}; }  ///< empty: it is on no bus
  /// No limit: its copies are of ordinary memory.
  static std::size_t lockable_bytes() { return std::numeric_limits<std::size_t>::max(); }

  /// Bytes that are allocated now, as device or as host memory.
  [[nodiscard]] std::size_t bytes_in_use(memory kind = memory::device) const noexcept {
    return account(kind).now();
  }
  /// The most bytes at once since the device was made, or since forget_peaks().
  [[nodiscard]] std::size_t peak_bytes(memory kind = memory::device) const noexcept {
    return account(kind).peak();
  }
  /// Resets the peaks of both kinds of memory to what is in use now.
  void forget_peaks() noexcept {
    device_account_.forget_peak();
    host_account_.forget_peak();
  }

private:
  static void* allocate_for(memory_account& account, std::size_t bytes) {
    void* const memory = allocate_memory(bytes);
    account.add(bytes);
    return memory;
  }
  static void release_from(memory_account& account, void* memory, std::size_t bytes) noexcept {
    release_memory(memory, bytes);
    account.subtract(bytes);
  }
  [[nodiscard]] memory_account const& account(memory kind) const noexcept {
    return kind == memory::device ? device_account_ : host_account_;
  }

  thread_pool threads_;
  memory_account device_account_;
  memory_account host_account_;
};

inline stream::stream(device& device) : stream{device.threads()} {}

static_assert(device_policy<device>);

}  // namespace superoffload::cpu
