// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/recorder.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::train {

/// A timeline of a few steps, in the JSON that chrome://tracing and ui.perfetto.dev open: a row for the steps
/// and one for each track, with a slice for each span.
class step_trace {
public:
  /// `units`: their names.
  explicit step_trace(std::vector<std::string> units) : units_{std::move(units)} {}

  /// Adds a step's recording. Steps are in order and of one recorder.
  void add(std::int64_t step, recording seen);
  [[nodiscard]] std::size_t steps() const noexcept { return steps_.size(); }  ///< that were added

  /// `tracks`: of that recorder.
  [[nodiscard]] std::string json(std::vector<track> const& tracks) const;

private:
  struct traced_step {
    std::int64_t number;
    recording seen;
  };
  std::vector<std::string> units_;
  std::vector<traced_step> steps_;
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/step_trace_inl.hpp>
#endif
