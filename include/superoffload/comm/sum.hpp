// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace superoffload::comm {

/// to[i] (+)= parts[0][i] + parts[1][i] + ..., in this order and in wide<From>, what `to` holds added last,
/// rounded once. There is at least one part; each is [count] of From at an aligned address. `to` overlaps
/// none of them.
template <element From, element To>
  requires std::same_as<wide<From>, wide<To>>
void sum_in_order(std::span<std::byte const* const> parts, To* to, std::int64_t count, bool accumulate) {
  constexpr std::int64_t block = 512;
  wide<From> sum[block];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    auto const size = std::min(block, count - begin);
    auto const part = [&](std::size_t r) { return reinterpret_cast<From const*>(parts[r]) + begin; };
    auto const* const first = part(0);
    for (std::int64_t i = 0; i < size; ++i) { sum[i] = static_cast<wide<From>>(first[i]); }
    for (std::size_t r = 1; r < parts.size(); ++r) {
      auto const* const next = part(r);
      for (std::int64_t i = 0; i < size; ++i) { sum[i] += static_cast<wide<From>>(next[i]); }
    }
    if (accumulate) {
      for (std::int64_t i = 0; i < size; ++i) {
        to[begin + i] = To(sum[i] + static_cast<wide<From>>(to[begin + i]));
      }
    } else {
      for (std::int64_t i = 0; i < size; ++i) { to[begin + i] = To(sum[i]); }
    }
  }
}

}  // namespace superoffload::comm
