// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/reports/run_description.hpp>
#include <superoffload/train/run/metrics.hpp>

#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// Metrics as JSON lines.
class lines_report {
public:
  /// As metrics_file.
  lines_report(metrics_target const& target, std::vector<std::string> units)
      : file_{target}, run_{target.run}, units_{std::move(units)} {}

  /// @{
  /// Appends a line. \throws error(io_failure)
  void step(step_metrics const& m) { file_.write(to_json(m, run_, units_)); }
  void evaluation(evaluation_metrics const& m) { file_.write(to_json(m, run_)); }
  /// @}

private:
  metrics_file file_;
  std::string run_;
  std::vector<std::string> units_;
};
static_assert(report_sink<lines_report>);

}  // namespace superoffload::train
