// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/kernel/adamw.hpp>

#include <cmath>
#include <cstdint>

namespace superoffload::optim {

/// Constants of a run's AdamW, as torch.optim.AdamW names them. The learning rate comes from a schedule.
struct adamw_settings {
  double beta1 = 0.9;         ///< decay of m, the mean of gradients: in [0, 1)
  double beta2 = 0.999;       ///< decay of v, the mean of squared gradients: in [0, 1)
  double epsilon = 1e-8;      ///< added to the root of v; positive also as a float
  double weight_decay = 0.0;  ///< decoupled: a step multiplies weights by 1 - rate * weight_decay
};

/// \throws error(bad_input) that names the flag, for a value for which AdamW is not defined.
inline void check(adamw_settings const& s) {
  auto const beta = [](double value, char const* flag) {
    expect(value >= 0.0 && value < 1.0, exit_code::bad_input, flag, " is ", value,
           ", expected at least 0 and below 1");
  };
  beta(s.beta1, "--adam_beta1");
  beta(s.beta2, "--adam_beta2");
  expect(std::isfinite(s.epsilon) && static_cast<float>(s.epsilon) > 0.0F, exit_code::bad_input,
         "--adam_eps is ", s.epsilon, ", expected a positive number");
  expect(std::isfinite(s.weight_decay) && s.weight_decay >= 0.0, exit_code::bad_input, "--weight_decay is ",
         s.weight_decay, ", expected 0 or more");
}

/// The numbers of optimizer step `t` (from 1), computed in double and rounded once.
inline kernel::adamw_step make_step(adamw_settings const& s, double rate, std::int64_t t, float factor,
                                    bool decays = true) {
  auto const steps = static_cast<double>(t);
  return {.decay = static_cast<float>(decays ? 1.0 - rate * s.weight_decay : 1.0),
          .beta1 = static_cast<float>(s.beta1),
          .beta2 = static_cast<float>(s.beta2),
          .one_minus_beta1 = static_cast<float>(1.0 - s.beta1),
          .one_minus_beta2 = static_cast<float>(1.0 - s.beta2),
          .step_size = static_cast<float>(rate / (1.0 - std::pow(s.beta1, steps))),
          .inverse_root2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, steps))),
          .epsilon = static_cast<float>(s.epsilon),
          .factor = factor};
}

}  // namespace superoffload::optim
