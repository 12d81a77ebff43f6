// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace superoffload::train {

/// The source of weights: `read(name, first, to)` fills `to` with the tensor's elements from `first` on, as
/// fp32.
struct tensor_reader : std::function<void(std::string const& name, std::int64_t first, std::span<float> to)> {
  using function::function;
  bool is_concurrent = false;  ///< May several threads call it at once? Weights are then loaded by several.
};

}  // namespace superoffload::train
