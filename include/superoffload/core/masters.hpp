// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace superoffload {

/// The index of the first value that is no master (NaN, infinite, or not below bfloat16::master_limit in
/// magnitude); the number of values if there is none.
template <class Value>
std::size_t first_beyond_masters(std::span<Value const> values) {
  auto const magnitude = [](Value value) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0x7FFFFFFFU;
  };
  constexpr auto limit = std::bit_cast<std::uint32_t>(bfloat16::master_limit);
  // Of positive floats the bits compare as the values do, and NaN's are the largest. One pass without
  // branches, which the compiler vectorises, finds that there is none.
  std::uint32_t largest = 0;
  for (auto const value : values) { largest = std::max(largest, magnitude(value)); }
  if (largest < limit) {
    return values.size();
  }
  auto const at = std::ranges::find_if(values, [&](Value value) { return magnitude(value) >= limit; });
  return static_cast<std::size_t>(at - values.begin());
}

}  // namespace superoffload
