// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace superoffload::optim {

/// The factor of torch.nn.utils.clip_grad_norm_: min(1, max_norm / (norm + 1e-6)); max_norm 0: no clipping.
inline float clip_factor(double norm, double max_norm) {
  return max_norm > 0.0 ? static_cast<float>(std::min(1.0, max_norm / (norm + 1e-6))) : 1.0F;
}

}  // namespace superoffload::optim
