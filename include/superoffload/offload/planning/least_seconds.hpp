// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace superoffload::offload::detail {

using clock = std::chrono::steady_clock;
inline double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}
/// The shortest of several runs of work(), which waits for its own end. The first run is not counted.
template <class Work>
double least_seconds(Work&& work, int runs = 3) {
  work();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    auto const begin = clock::now();
    work();
    least = std::min(least, seconds_since(begin));
  }
  return least;
}

}  // namespace superoffload::offload::detail
