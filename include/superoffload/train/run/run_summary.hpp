// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace superoffload::train {

/// The work of a step and its time; of several steps, their means.
struct timed_step {
  double time = 0.0;    ///< s
  double tokens = 0.0;  ///< over all ranks, padding not counted

  /// Seconds. Not without tokens.
  [[nodiscard]] double time_per_token() const { return time / tokens; }
};

/// How a run ended.
struct run_summary {
  std::int64_t steps = 0;  ///< done since the run began, those before resuming included
  /// Mean loss per label token of the held-out data, before the first step; none: not evaluated.
  std::optional<double> eval_before, eval_after;  ///< the same after the last step
  std::filesystem::path exported;                 ///< empty: nothing was exported
  std::filesystem::path checkpoint;               ///< the last one, saved or resumed from; empty: none
  int signal = 0;                                 ///< that ended the run early; 0: it went to its end
  timed_step planned;                             ///< the mean of the data set
  std::optional<timed_step> measured;  ///< the mean, without the first two if there are others; none: no step
  bool is_rank_zero = true;            ///< is this of the rank that tells of the run?
};

}  // namespace superoffload::train
