// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/appended_file.hpp>
#include <superoffload/train/reports/run_description.hpp>

#include <cstdint>
#include <filesystem>

namespace superoffload::train {

/// Event files for TensorBoard, one of each session of a run.
class tensorboard_report {
public:
  /// Begins a new file in `directory`, after `last_step`. \throws error as io::appended_file.
  tensorboard_report(std::filesystem::path const& directory, std::int64_t last_step,
                     run_description const& run);

  /// @{
  /// Appends an event. \throws error(io_failure)
  void step(step_metrics const& m);
  void evaluation(evaluation_metrics const& m);
  /// @}

private:
  void write(std::int64_t step, scalars const& values);

  double gemm_rate_;
  io::appended_file file_;
};
static_assert(report_sink<tensorboard_report>);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/reports/impl/tensorboard_report_inl.hpp>
#endif
