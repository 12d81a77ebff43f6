// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/recorder.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace superoffload::train {

/// Where the time of a step went.
struct breakdown {
  double seconds = 0.0;  ///< length of the recording
  /// By resource, the share of the time in which it ran; of CPU Adam, the mean of its threads.
  std::array<double, resources> busy;
  std::vector<double> waits;  ///< by unit, s that the device was idle before its passes

  /// The sum of `waits`, s.
  [[nodiscard]] double waited() const {
    double sum = 0.0;
    for (double const seconds_of_unit : waits) { sum += seconds_of_unit; }
    return sum;
  }
};

/// The breakdown of a recording of `tracks`, for a model of `units` units.
breakdown break_down(recording const& seen, std::vector<track> const& tracks, std::size_t units);

/// \returns one line for the user. `units` are the units' names.
std::string describe(breakdown const& b, std::vector<std::string> const& units);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/breakdown_inl.hpp>
#endif
