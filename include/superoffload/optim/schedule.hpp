// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace superoffload::optim {

/// The learning rates of transformers' get_{constant,linear,cosine}_schedule_with_warmup. The first warm-up
/// step has rate 0.
struct schedule {
  enum class shape { constant, linear, cosine };

  shape kind = shape::constant;
  double peak = 1e-5;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;  ///< the step at which the rate is 0

  /// The rate of step k, from 0.
  [[nodiscard]] double operator()(std::int64_t k) const {
    if (k < warmup_steps) {
      return peak * static_cast<double>(k) / static_cast<double>(warmup_steps);
    }
    if (kind == shape::constant) {
      return peak;
    }
    auto const length = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
    double const done = static_cast<double>(k - warmup_steps) / length;
    if (kind == shape::linear) {
      return peak * std::max(0.0, 1.0 - done);
    }
    return peak * std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * done)));
  }
};

}  // namespace superoffload::optim
