// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/configuration.hpp>

namespace superoffload::offload {

/// What the check of a step's gradient, its norm and overflow, came to.
enum class check_result {
  unclipped,  ///< the step counts, with the clip factor 1
  clipped,    ///< with another
  skipped,    ///< it changes nothing
};

/// Where the scheduler is in a step, which begins with the first gradient and ends with its check: is it
/// known, and is a speculative update worth its while?
class step_check {
public:
  /// `hit_rate`: the estimate to begin with.
  step_check(configuration const& a, double hit_rate)
      : speculates_{a.speculates && !a.immediate}, least_hit_rate_{a.least_hit_rate()}, hit_rate_{hit_rate} {}

  /// The coming step is known, should it not be clipped.
  void announce() { announced_ = true; }
  void begin() { before_ = true; }
  void end(check_result result) {
    before_ = false;
    result_ = result;
    came_true_ = announced_ && result == check_result::unclipped;
    hit_rate_ = 0.9 * hit_rate_ + (result == check_result::unclipped ? 0.1 : 0.0);
    announced_ = false;
  }

  /// Has a step begun that was not checked?
  [[nodiscard]] bool before() const { return before_; }
  [[nodiscard]] bool announced() const { return announced_; }
  /// Are weights made before the check? Not where that was in vain too often.
  [[nodiscard]] bool speculating() const {
    return before_ && announced_ && speculates_ && hit_rate_ >= least_hit_rate_;
  }
  /// Of the last check.
  [[nodiscard]] bool skipped() const { return result_ == check_result::skipped; }
  /// Did it confirm speculative updates?
  [[nodiscard]] bool came_true() const { return came_true_; }
  /// An estimate of how often a speculative update comes true: a moving average over steps.
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
