// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/adamw.hpp>
#include <superoffload/optim/adamw.hpp>

#include <cstdint>

namespace superoffload::offload {

/// The numbers of one optimizer step. All work for a step uses its record, even if settings have changed
/// since.
struct step_record {
  optim::adamw_settings settings{};
  double rate = 0.0;
  std::int64_t t = 1;   ///< optimizer steps so far, this one included
  float factor = 1.0F;  ///< clip factor of the gradient

  [[nodiscard]] kernel::adamw_step numbers(bool decays) const {
    return optim::make_step(settings, rate, t, factor, decays);
  }
};

/// The parts of a parameter's optimizer state, fp32, in any memory tier and form.
enum class state_part { master, m, v };

}  // namespace superoffload::offload
