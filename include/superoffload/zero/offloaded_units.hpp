// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace superoffload::zero {

/// The units whose weights or gradients are not kept in device memory. Decided before anything is allocated.
struct offloaded_units {
  /// By unit: do its weights live in host memory, and are they prefetched to the device?
  std::vector<bool> weights{};
  /// By unit: does its gradient share device buffers with others, and leave them when it is final?
  std::vector<bool> gradients{};
  /// Device buffers for offloaded weights and gradients, as large as buffer_sizes says. A unit in use holds
  /// one; every prefetch meanwhile needs another.
  int weight_buffers = 3,    ///< for weights
      gradient_buffers = 3;  ///< for gradients

  /// Are the unit's weights offloaded? Not those of units behind the end of the list.
  [[nodiscard]] bool weights_of(int unit) const { return has(weights, unit); }
  /// Is the unit's gradient offloaded? Not those of units behind the end of the list.
  [[nodiscard]] bool gradient_of(int unit) const { return has(gradients, unit); }
  [[nodiscard]] bool any_weights() const { return any(weights); }     ///< is any unit's weight offloaded?
  [[nodiscard]] bool any_gradient() const { return any(gradients); }  ///< is any unit's gradient offloaded?

  /// Compares by value; lists that differ in length differ.
  friend bool operator==(offloaded_units const&, offloaded_units const&) = default;

private:
  static bool any(std::vector<bool> const& units) {
    return std::find(units.begin(), units.end(), true) != units.end();
  }
  static bool has(std::vector<bool> const& units, int unit) {
    return static_cast<std::size_t>(unit) < units.size() && units[static_cast<std::size_t>(unit)];
  }
};

}  // namespace superoffload::zero
