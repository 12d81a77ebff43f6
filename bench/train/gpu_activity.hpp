// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::bench {

/// What a GPU did between begin and end of its life, read through CUPTI: every kernel, copy and fill of this
/// process. Observing costs a few microseconds a launch, so times are better measured without.
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

  /// Ends the observation; in order of their begin. The device must be idle.
  std::vector<interval> const& finish();

  /// The share of the time from the first begin to the last end in which nothing ran.
  [[nodiscard]] double idle_share() const;
  /// Writes the intervals as trace events, for chrome://tracing and Perfetto.
  void write_trace(std::string const& path) const;
};

}  // namespace superoffload::bench
