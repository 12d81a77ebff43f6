// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/configuration.hpp>

namespace superoffload::offload {

/// The result of a step's gradient check.
enum class check_result {
  unclipped,  ///< the step is applied with the clip factor 1
  clipped,    ///< the step is applied with another factor
  skipped,    ///< the step changes nothing
};

/// The scheduler's position in a step, which begins with the first gradient and ends with its check; and
/// whether speculative updates are made.
class step_check {
public:
  /// `hit_rate`: the initial estimate.
  step_check(configuration const& a, double hit_rate)
      : speculates_{a.speculates && !a.immediate}, least_hit_rate_{a.least_hit_rate()}, hit_rate_{hit_rate} {}

  /// The coming step is known, if it is not clipped.
  void announce() { announced_ = true; }
  void begin() { before_ = true; }  ///< the step's first gradient comes
  /// The step was checked. The result moves the estimate of the hit rate by a tenth of the difference.
  void end(check_result result) {
    before_ = false;
    result_ = result;
    came_true_ = announced_ && result == check_result::unclipped;
    hit_rate_ = 0.9 * hit_rate_ + (result == check_result::unclipped ? 0.1 : 0.0);
    announced_ = false;
  }

  /// Has a step begun that is not checked?
  [[nodiscard]] bool before() const { return before_; }
  /// Was announce() called for the coming step, or the one that is not checked?
  [[nodiscard]] bool announced() const { return announced_; }
  /// Are speculative updates made now? Not while too many were wrong.
  [[nodiscard]] bool speculating() const {
    return before_ && announced_ && speculates_ && hit_rate_ >= least_hit_rate_;
  }
  /// Did the last check skip the step?
  [[nodiscard]] bool skipped() const { return result_ == check_result::skipped; }
  /// Did the last check confirm speculative updates?
  [[nodiscard]] bool came_true() const { return came_true_; }
  /// An estimate of the share of speculative updates that the check confirms: a moving average over steps.
  [[nodiscard]] double hit_rate() const { return hit_rate_; }

private:
  bool speculates_;
  double least_hit_rate_, hit_rate_;
  bool before_ = false;
  bool announced_ = false;
  check_result result_ = check_result::unclipped;
  bool came_true_ = false;
};

}  // namespace superoffload::offload
