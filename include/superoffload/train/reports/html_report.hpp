// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/recorder.hpp>
#include <superoffload/train/reports/history.hpp>
#include <superoffload/train/reports/run_description.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace superoffload::train {

/// A page of one file about a run, for a browser: curves, memory, the planned step beside a measured one. It
/// is written anew, atomically, every few seconds.
class html_report {
public:
  /// Writes the page. Draws what the metrics file `lines` has already. \throws error as history::read() and
  /// io::replace_file().
  html_report(std::filesystem::path page, std::filesystem::path const& lines, run_description run);

  /// Writes the page anew, unless that was a few seconds ago. \throws error as io::replace_file()
  void step(step_metrics const& m);
  /// The next page will show it.
  void evaluation(evaluation_metrics const& m);
  /// Shows that step's recording beside the plan's.
  void timeline(std::int64_t step, recording const& seen, std::vector<track> const& tracks);
  /// The run has ended; `how`: for the page's head, such as "finished".
  void end(std::string const& how);

private:
  void write(std::string const& state);

  std::filesystem::path page_;
  run_description run_;
  history history_;
  step_metrics last_;
  std::string measured_;  ///< JSON of the recorded step; empty: none yet
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), written_{};
};
static_assert(report_sink<html_report>);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/reports/impl/html_report_inl.hpp>
#endif
