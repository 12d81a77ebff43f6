// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>
#include <superoffload/data/shuffle.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace superoffload::data::testing {

/// `rows` examples of log-normal lengths with a mean of 540 tokens, cut to `max_length`. Their labels are all
/// tokens but the first.
inline example_set log_normal_examples(std::int64_t rows, std::int64_t max_length, std::uint64_t seed = 1) {
  constexpr double mean = 540.0, sigma = 0.8;
  example_set examples;
  for (std::int64_t row = 0; row < rows; ++row) {
    auto const uniform = [&](std::uint64_t stream) {
      return (static_cast<double>(random_bits(seed, stream, static_cast<std::uint64_t>(row)) >> 11U) + 0.5) *
             0x1p-53;
    };
    auto const normal =
        std::sqrt(-2.0 * std::log(uniform(0))) * std::cos(2.0 * std::numbers::pi * uniform(1));
    auto const length = std::exp(std::log(mean) - sigma * sigma / 2.0 + sigma * normal);
    std::vector<std::int32_t> const tokens(
        static_cast<std::size_t>(std::clamp(std::llround(length), 2LL, static_cast<long long>(max_length))),
        7);
    examples.add(tokens, 1);
  }
  return examples;
}

}  // namespace superoffload::data::testing
