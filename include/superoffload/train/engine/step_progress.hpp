// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace superoffload::train {

/// How far an engine's step is: which of its calls may come next. \throws error(bad_input) from the call that
/// may not.
class step_progress {
public:
  /// A new step; see engine_core::begin_step(). The last one need not have ended.
  void begin(std::int64_t label_tokens, std::int64_t micro_batches, std::optional<double> rate) {
    expect(label_tokens >= 0 && micro_batches >= 1, exit_code::bad_input, "begin_step() of ", micro_batches,
           " micro-batches with ", label_tokens,
           " label tokens, expected at least one micro-batch, and not less than no label");
    if (rate) {
      expect_rate(*rate, "begin_step()");
    }
    *this = {};
    label_tokens_ = label_tokens;
    micro_batches_ = micro_batches;
    announced_rate_ = label_tokens > 0 ? rate : std::nullopt;
  }
  void forward() noexcept { recorded_ = true; }
  void backward() {
    expect(recorded_, exit_code::bad_input, "backward() without a forward() before it");
    recorded_ = false;
    ++done_;
  }
  void end() noexcept { *this = {}; }

  /// Before calls that would overwrite what a backward needs.
  void expect_nothing_recorded(char const* call) const {
    expect(!recorded_, exit_code::bad_input, call,
           " between a forward() and its backward(), which needs what the call would overwrite");
  }
  void expect_complete(double rate) const {
    expect(is_complete(), exit_code::bad_input, "step() after the backward of ", done_, " of ",
           micro_batches_, " micro-batches; expected a step whose micro-batches have all had theirs, once");
    expect_rate(rate, "step()");
    expect(!announced_rate_ || *announced_rate_ == rate, exit_code::bad_input,
           "step() was given the learning rate ", rate, ", but begin_step() ", announced_rate_.value_or(0.0),
           "; expected the same");
  }

  /// Has it begun, and not all backwards were queued?
  [[nodiscard]] bool is_under_way() const noexcept { return done_ < micro_batches_; }
  /// Were all backwards queued, and step() is to come?
  [[nodiscard]] bool is_complete() const noexcept { return micro_batches_ > 0 && done_ == micro_batches_; }
  [[nodiscard]] bool is_first() const noexcept { return done_ == 0; }  ///< is it the first micro-batch?
  [[nodiscard]] bool is_last() const noexcept { return done_ + 1 == micro_batches_; }  ///< or the last one?
  [[nodiscard]] std::int64_t label_tokens() const noexcept { return label_tokens_; }   ///< of the step
  /// By which losses and gradients are divided.
  [[nodiscard]] std::int64_t divisor() const noexcept { return std::max<std::int64_t>(1, label_tokens_); }
  /// The rate of begin_step(), if it was given one and there are labels.
  [[nodiscard]] std::optional<double> announced_rate() const noexcept { return announced_rate_; }

private:
  static void expect_rate(double rate, char const* call) {
    expect(std::isfinite(rate) && rate >= 0.0, exit_code::bad_input, call, " was given the learning rate ",
           rate, ", expected a finite one, not below 0");
  }

  std::int64_t label_tokens_ = 0;
  std::int64_t micro_batches_ = 0;  ///< 0: no step has begun
  std::int64_t done_ = 0;           ///< whose backward was queued
  std::optional<double> announced_rate_;
  bool recorded_ = false;  ///< a forward waits for its backward
};

}  // namespace superoffload::train
