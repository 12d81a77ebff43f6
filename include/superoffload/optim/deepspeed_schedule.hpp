// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace superoffload::optim {

/// The learning rates of DeepSpeed's schedulers. These advance after a step: step k has the rate of iteration
/// k - 1, and the first two steps have the lowest. A warm-up has at least two steps.
struct deepspeed_schedule {
  /// DeepSpeed's "type".
  enum class rule {
    warmup,         ///< WarmupLR: constant after the warm-up
    warmup_decay,   ///< WarmupDecayLR: linear decay to the rate at which the warm-up began
    warmup_cosine,  ///< WarmupCosineLR
  };
  /// The warm-up, "warmup_type": the rate grows with the logarithm of the iteration, or with the iteration.
  enum class rise { logarithmic, linear };

  rule kind = rule::warmup;          ///< what follows the warm-up
  rise warmup = rise::logarithmic;   ///< how the rate grows until then
  double peak = 1e-3;                ///< the rate at the end of the warm-up
  double begin = 0.0;                ///< of the warm-up: a rate; for warmup_cosine a share of the peak
  double end = 1e-4;                 ///< of warmup_cosine, a share of the peak
  std::int64_t warmup_steps = 1000;  ///< fewer than 2 count as 2
  std::int64_t total_steps = 0;      ///< the step at which the decay ends; 0: the steps of the run

  /// The rate of step k, from 0.
  [[nodiscard]] double operator()(std::int64_t k) const {
    bool const cosine = kind == rule::warmup_cosine;
    if (k == 0) {
      return cosine ? 0.0 : begin;
    }
    auto const iteration = k - 1;
    auto const rising = std::max<std::int64_t>(2, warmup_steps);
    double const share = iteration < rising ? risen(iteration, rising) : falling(iteration, rising);
    if (!cosine) {
      return begin + (peak - begin) * share;
    }
    return peak * (iteration < rising ? begin + (1.0 - begin) * share : end + (1.0 - end) * share);
  }

private:
  [[nodiscard]] double risen(std::int64_t iteration, std::int64_t rising) const {
    return warmup == rise::linear
               ? static_cast<double>(iteration) / static_cast<double>(rising)
               : std::log(static_cast<double>(iteration + 1)) / std::log(static_cast<double>(rising));
  }
  [[nodiscard]] double falling(std::int64_t iteration, std::int64_t rising) const {
    auto const length = static_cast<double>(std::max<std::int64_t>(1, total_steps - rising));
    if (kind == rule::warmup_decay) {
      return std::max(0.0, static_cast<double>(total_steps - iteration) / length);
    }
    if (kind == rule::warmup_cosine) {
      double const done = std::min(1.0, static_cast<double>(iteration - rising + 1) / length);
      return 0.5 * (1.0 + std::cos(std::numbers::pi * done));
    }
    return 1.0;
  }
};

}  // namespace superoffload::optim
