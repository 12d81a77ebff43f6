// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

namespace superoffload {

/// Bytes in use: now, and at the peak. Any thread may count.
class memory_account {
public:
  /// @{
  /// Call add() after an allocation and subtract() with the same bytes after its release.
  void add(std::size_t bytes) noexcept {
    auto const sum = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    auto peak = peak_.load(std::memory_order_relaxed);
    while (peak < sum && !peak_.compare_exchange_weak(peak, sum, std::memory_order_relaxed)) {}
  }
  void subtract(std::size_t bytes) noexcept { now_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// @}
  /// Resets the peak to what is in use now.
  void forget_peak() noexcept { peak_.store(now(), std::memory_order_relaxed); }

  /// Bytes in use.
  [[nodiscard]] std::size_t now() const noexcept { return now_.load(std::memory_order_relaxed); }
  /// Bytes; the most since the beginning or forget_peak().
  [[nodiscard]] std::size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

private:
  std::atomic<std::size_t> now_{0};
  std::atomic<std::size_t> peak_{0};
};

}  // namespace superoffload
