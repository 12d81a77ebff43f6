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
  optim::adamw_settings settings{};  ///< as they were at this step
  double rate = 0.0;                 ///< the learning rate
  std::int64_t t = 1;                ///< optimizer steps so far, this one included
  float factor = 1.0F;               ///< clip factor of the gradient

  /// The scalars of the kernels, for tensors of a unit. `decays`: does weight decay apply to them?
  [[nodiscard]] kernel::adamw_step numbers(int unit, bool decays) const {
    auto step = optim::make_step(settings, rate, t, factor, decays);
    step.noise = kernel::noise_key(t, unit);
    return step;
  }
};

/// The parts of a parameter's optimizer state, fp32, in any memory tier and form.
enum class state_part { master, m, v };

}  // namespace superoffload::offload
