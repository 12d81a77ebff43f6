// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/sum.hpp>

#include <algorithm>

namespace superoffload::comm {

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

#ifdef SUPEROFFLOAD_COMPILED
// All that the condition allows.
template void sum_in_order<float>(std::span<std::byte const* const>, float*, std::int64_t, bool);
template void sum_in_order<float>(std::span<std::byte const* const>, bfloat16*, std::int64_t, bool);
template void sum_in_order<bfloat16>(std::span<std::byte const* const>, float*, std::int64_t, bool);
template void sum_in_order<bfloat16>(std::span<std::byte const* const>, bfloat16*, std::int64_t, bool);
template void sum_in_order<double>(std::span<std::byte const* const>, double*, std::int64_t, bool);
#endif

}  // namespace superoffload::comm
