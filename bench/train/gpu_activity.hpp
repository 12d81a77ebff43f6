// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::bench {

/// Records every kernel, copy and fill of this process on the GPU during the object's lifetime, through
/// CUPTI. This costs a few microseconds a launch, so time measurements should not use it.
class gpu_activity {
public:
  struct interval {
    std::string name;
    std::uint64_t begin, end;  ///< nanoseconds
    std::uint32_t stream;
  };

  gpu_activity();
  gpu_activity(gpu_activity const&) = delete;
  gpu_activity& operator=(gpu_activity const&) = delete;
  ~gpu_activity();

  /// Ends the recording. \returns the intervals by begin. The device must be idle.
  std::vector<interval> const& finish();

  /// The share of the time from the first begin to the last end in which nothing ran.
  [[nodiscard]] double idle_share() const;
  /// Writes the intervals as trace events, for chrome://tracing and Perfetto.
  void write_trace(std::string const& path) const;
};

}  // namespace superoffload::bench
