// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/data/share_out.hpp>
#include <superoffload/model/view.hpp>

#include <cstdint>

namespace superoffload::train {

/// The FLOPs of forward and backward on a document: a backward takes twice the GEMMs of its forward, and 2.5
/// times its attention. In layers with a window every token counts as if it saw a whole one.
template <class Model>
data::document_cost document_cost_of(Model const& model) {
  constexpr double gemms = 3.0, attention = 3.5;
  auto const of_attention = [&](std::int64_t tokens, auto const& visible) {
    return attention * (model.forward_flops(tokens, visible) -
                        model.forward_flops(tokens, [](std::int32_t) { return std::int64_t{0}; }));
  };
  double const of_gemms = gemms * model.forward_flops(1, [](std::int32_t) { return std::int64_t{0}; });
  // A token sees half of its document on average.
  return {of_gemms + of_attention(1, [](std::int32_t window) { return std::int64_t{window}; }),
          of_attention(0, [](std::int32_t window) { return std::int64_t{window == 0}; }) / 2.0};
}

}  // namespace superoffload::train
