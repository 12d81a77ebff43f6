// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/adamw.hpp>
#include <superoffload/optim/adamw.hpp>

#include <cstdint>

namespace superoffload::offload {

/// The numbers of one optimizer step. What is done for a step, now or later, is done with its record,
/// whatever was set since.
struct step_record {
  optim::adamw_settings settings{};
  double rate = 0.0;
  std::int64_t t = 1;   ///< accepted steps, this one included
  float factor = 1.0F;  ///< of the gradient

  [[nodiscard]] kernel::adamw_step numbers(bool decays) const {
    return optim::make_step(settings, rate, t, factor, decays);
  }
};

/// What the optimizer keeps of a parameter in fp32, in whatever place and form.
enum class state_part { master, m, v };

}  // namespace superoffload::offload
