// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/elementwise.hpp>

#include <bit>
#include <cmath>
#include <cstdint>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T>
int64_t items(kernel::add<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}

template <element T>
void run(kernel::add<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const mine = range_of(first, last, elements_of_item, a.count);
  for_vectors<W>(mine.end - mine.begin, [&](int64_t offset, auto extent) {
    auto const i = mine.begin + offset;
    store(a.out + i, load<W>(a.a + i, extent) + load<W>(a.b + i, extent), extent);
  });
}

/// Rounded once: by way of a float that keeps, as an odd last bit, that something was cut off.
inline bfloat16 rounded_from_double(double x) {
  auto const nearest = static_cast<float>(x);
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (static_cast<double>(nearest) != x && x == x) {
    if (std::abs(static_cast<double>(nearest)) > std::abs(x)) {
      --bits;
    }
    bits |= 1U;
  }
  return bfloat16{std::bit_cast<float>(bits)};
}

template <element From, element To>
int64_t items(kernel::convert<From, To> const& a) {
  return pieces_of(a.count, elements_of_item);
}

template <element From, element To>
void run(kernel::convert<From, To> const& a, int64_t first, int64_t last) {
  auto const mine = range_of(first, last, elements_of_item, a.count);
  if constexpr (std::same_as<wide<From>, wide<To>>) {
    using W = wide<From>;
    for_vectors<W>(mine.end - mine.begin, [&](int64_t offset, auto extent) {
      auto const i = mine.begin + offset;
      auto x = load<W>(a.from + i, extent);
      if (a.accumulate) {
        x = load<W>(a.to + i, extent) + x;
      }
      store(a.to + i, x, extent);
    });
  } else {  // one of them is double
    for (auto i = mine.begin; i < mine.end; ++i) {
      double const x = a.from[i];
      double const total = a.accumulate ? static_cast<double>(a.to[i]) + x : x;
      if constexpr (std::same_as<To, bfloat16>) {
        a.to[i] = rounded_from_double(total);
      } else {
        a.to[i] = static_cast<To>(total);
      }
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
