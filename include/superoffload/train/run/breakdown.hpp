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
  double seconds = 0.0;                ///< that were looked at
  std::array<double, resources> busy;  ///< share of them, by resource: a stream or more of it ran; of CPU
                                       ///< Adam, the mean of its threads
  std::vector<double> waits;  ///< s that the device stood still before each unit's forward or backward

  [[nodiscard]] double waited() const {
    double sum = 0.0;
    for (double const seconds_of_unit : waits) { sum += seconds_of_unit; }
    return sum;
  }
};

/// Of a recording of these tracks, for a model of so many units.
breakdown break_down(recording const& seen, std::vector<track> const& tracks, std::size_t units);

/// In a line, for people. `units` are their names.
std::string describe(breakdown const& b, std::vector<std::string> const& units);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/breakdown_inl.hpp>
#endif
