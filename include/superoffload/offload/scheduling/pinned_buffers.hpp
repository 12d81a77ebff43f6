// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Tracks which pinned buffers, by number, are free, and which hold weights that are being copied to the
/// device.
class pinned_buffers {
public:
  static constexpr int none = -1;  ///< the number of no buffer

  /// All are free, with the numbers from 0.
  explicit pinned_buffers(int count) {
    for (int i = 0; i < count; ++i) { free_.push_back(i); }
  }

  /// How many are free.
  [[nodiscard]] std::size_t free() const { return free_.size(); }
  /// The number of a buffer that was free. \throws error(internal) if none is: ask free() first
  [[nodiscard]] int take() {
    expect(!free_.empty(), exit_code::internal, "a pinned buffer was taken when none was free");
    int const buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  /// Frees a taken buffer, and sets its number to none.
  void give(int& buffer) { free_.push_back(std::exchange(buffer, none)); }

  /// The buffer becomes free when its copy ends. Copies end in the order in which they were sent.
  void send(int buffer) { sent_.push_back(buffer); }
  /// The oldest copy has ended.
  void arrived() {
    free_.push_back(sent_.front());
    sent_.pop_front();
  }
  /// Is no copy under way?
  [[nodiscard]] bool all_arrived() const { return sent_.empty(); }

private:
  std::vector<int> free_;
  std::deque<int> sent_;
};

}  // namespace superoffload::offload
