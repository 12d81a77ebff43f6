// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace superoffload::optim {

/// The learning rates of transformers' get_{constant,linear,cosine}_schedule_with_warmup,
/// get_cosine_with_hard_restarts_schedule_with_warmup and get_polynomial_decay_schedule_with_warmup. The
/// first warm-up step has rate 0.
struct schedule {
  /// How the rate falls after the warm-up.
  enum class shape { constant, linear, cosine, cosine_with_restarts, polynomial };
  /// By the value of shape.
  static constexpr std::array<char const*, 5> names{"constant", "linear", "cosine", "cosine_with_restarts",
                                                    "polynomial"};

  shape kind = shape::constant;   ///< what follows the warm-up
  double peak = 1e-5;             ///< the rate at the end of the warm-up
  std::int64_t warmup_steps = 0;  ///< step k of the warm-up has the rate peak * k / warmup_steps
  std::int64_t total_steps = 1;   ///< the step at which the rate is `minimum`
  double minimum = 0.0;           ///< to which the rate falls, unless it is constant
  double cycles = 1.0;            ///< of cosine_with_restarts
  double power = 1.0;             ///< of polynomial

  /// The rate of step k, from 0.
  [[nodiscard]] double operator()(std::int64_t k) const {
    if (k < warmup_steps) {
      return peak * static_cast<double>(k) / static_cast<double>(warmup_steps);
    }
    if (kind == shape::constant) {
      return peak;
    }
    auto const length = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
    return minimum + (peak - minimum) * left(static_cast<double>(k - warmup_steps) / length);
  }

private:
  /// What is left of the rate after the share `done` of the steps; from 1 to 0.
  [[nodiscard]] double left(double done) const {
    auto const half_wave = [](double at) {
      return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * at)));
    };
    switch (kind) {
      case shape::cosine:
        return half_wave(done);
      case shape::cosine_with_restarts:
        return done < 1.0 ? half_wave(std::fmod(cycles * done, 1.0)) : 0.0;
      case shape::polynomial:
        return std::pow(std::max(0.0, 1.0 - done), power);
      default:
        return std::max(0.0, 1.0 - done);
    }
  }
};

[[nodiscard]] constexpr char const* name_of(schedule::shape s) noexcept {
  return schedule::names[static_cast<std::size_t>(s)];
}

}  // namespace superoffload::optim
