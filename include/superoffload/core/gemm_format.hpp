// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace superoffload {

/// The numbers that the linear layers of a model's blocks multiply.
enum class gemm_format : std::uint8_t {
  element,  ///< of the element type of the model
  float8,   ///< of 8 bits, in a model in bfloat16: nn::float8_linear_function
};

}  // namespace superoffload
