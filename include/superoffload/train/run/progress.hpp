// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/run/metrics.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace superoffload::train {

/// Logs the progress of a run: one status line with a bar, loss, rate, remaining time and peaks of memory if
/// the sink is live, else plain lines.
class progress {
public:
  using clock = std::chrono::steady_clock;  ///< does not jump when the time of day is set

  /// `first_step`: steps that are done already. Writes a plain line every `log_interval` steps.
  progress(std::int64_t first_step, std::int64_t total_steps, std::int64_t log_interval);

  /// A step is done.
  void step(step_metrics const& m);

private:
  [[nodiscard]] std::string status_of(step_metrics const& m, std::string const& left) const;

  std::int64_t first_step_, total_steps_, log_interval_;
  clock::time_point start_ = clock::now();
  clock::time_point last_drawn_{};
  bool live_;
};

/// "1:02:03", "4:05" or "0:07".
std::string clock_text(double seconds);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/progress_inl.hpp>
#endif
