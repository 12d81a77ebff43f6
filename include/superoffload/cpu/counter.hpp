// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/threads.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>

namespace superoffload::cpu {

/// A number that one thread at a time raises and that others wait for. Raising it costs a store and a load,
/// unless it reaches a value that a thread sleeps for.
class counter {
public:
  /// The number that the thread which raises it has reached; work done before that is visible to the caller.
  [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }

  /// `value` is not below the current one. Wakes the threads that wait for it or for less.
  void raise_to(std::uint64_t value) {
    // Sequentially consistent, as in wait_for: either the sleeper sees the value or this thread sees the
    // sleeper. An atomic exchange, because qemu's Arm lets a load overtake the store before it; elsewhere the
    // cost is the same.
    value_.exchange(value);
    if (value >= awaited_.load()) {
      std::lock_guard const lock{mutex_};
      awaited_.store(none);
      reached_.notify_all();
    }
  }

  /// Returns once the counter is at `value` or above. Polls `spins` times before it sleeps.
  void wait_for(std::uint64_t value, int spins = detail::spins) const {
    for (int spin = 0; spin < spins; ++spin) {
      if (this->value() >= value) {
        return;
      }
      detail::relax();
    }
    std::unique_lock lock{mutex_};
    while (true) {
      awaited_.exchange(std::min(awaited_.load(), value));
      if (value_.load() >= value) {
        return;
      }
      reached_.wait(lock);
    }
  }

private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  alignas(64) std::atomic<std::uint64_t> value_{0};
  mutable std::atomic<std::uint64_t> awaited_{none};  ///< the least value that a thread sleeps for
  mutable std::mutex mutex_;
  mutable std::condition_variable reached_;
};

}  // namespace superoffload::cpu
