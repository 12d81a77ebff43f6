// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/adamw.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T>
int64_t items(kernel::adamw<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}

template <element T>
void run(kernel::adamw<T> const& a, int64_t first, int64_t last) {
  auto const mine = range_of(first, last, elements_of_item, a.count);
  auto const step = a.step;
  bool const in_place = static_cast<void const*>(a.weight) == static_cast<void const*>(a.master);
  for_vectors<float>(mine.end - mine.begin, [&](int64_t offset, auto extent) {
    auto const i = mine.begin + offset;
    exact_floats w = load<float>(a.master + i, extent);
    exact_floats m = load<float>(a.m + i, extent);
    exact_floats v = load<float>(a.v + i, extent);
    exact_floats const g = load<float>(a.gradient + i, extent);
    kernel::adamw_rule(w, m, v, g, step, [](exact_floats x) { return sqrt(x); });
    auto const master = without_nan_payload(w);
    store(a.master + i, master, extent);
    store(a.m + i, without_nan_payload(m), extent);
    store(a.v + i, without_nan_payload(v), extent);
    if constexpr (std::same_as<T, bfloat16>) {
      store<rounding::half_away>(a.weight + i, master, extent);
    } else if (!in_place) {
      store(a.weight + i, master, extent);
    }
  });
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
