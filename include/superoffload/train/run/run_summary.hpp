// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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

/// The mean of the steps of a run, without the first two if there are others. Its memory does not grow.
class step_mean {
public:
  /// Counts the next step.
  void add(timed_step const& step) {
    constexpr std::int64_t first_of_sum = 3;
    ++steps_;
    sum_ = steps_ <= first_of_sum ? step : timed_step{sum_.time + step.time, sum_.tokens + step.tokens};
  }
  /// None: there was no step with tokens.
  [[nodiscard]] std::optional<timed_step> mean() const {
    auto const count = static_cast<double>(std::max<std::int64_t>(1, steps_ - 2));
    return sum_.tokens > 0.0 ? std::optional{timed_step{sum_.time / count, sum_.tokens / count}}
                             : std::nullopt;
  }

private:
  std::int64_t steps_ = 0;
  timed_step sum_;  ///< of up to three steps, the last one alone
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
