// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/wandb_log.hpp>
#include <superoffload/train/reports/run_description.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace superoffload::train {

/// An offline run of Weights & Biases, for `wandb sync`. A run that is resumed has one log, as one that was
/// not interrupted.
class wandb_report {
public:
  /// Continues the log of `run` in `directory` after `last_step`; negative: a new run.
  /// \throws error as io::wandb_log.
  wandb_report(std::filesystem::path const& directory, std::int64_t last_step, run_description const& run);

  /// @{
  /// Appends to the log's history. \throws error(io_failure)
  void step(step_metrics const& m);
  void evaluation(evaluation_metrics const& m);
  /// @}
  /// The run has ended. After an error or a signal the log is left open, for it may be resumed.
  void finish();

private:
  void write(std::int64_t step, scalars const& values);

  double gemm_rate_, began_;
  std::int64_t lines_ = 0;  ///< of the history
  std::optional<io::wandb_log> log_;
};
static_assert(report_sink<wandb_report>);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/reports/impl/wandb_report_inl.hpp>
#endif
