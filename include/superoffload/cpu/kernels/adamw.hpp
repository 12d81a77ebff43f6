// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/cpu/kernels/streaming.hpp>
#include <superoffload/kernel/adamw.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T, element G>
int64_t items(kernel::adamw<T, G> const& a) {
  return pieces_of(a.count, elements_of_item);
}

template <element T, element G>
void run(kernel::adamw<T, G> const& a, int64_t first, int64_t last) {
  auto const step = a.step;
  auto const update = [&](int64_t i, auto extent) {
    std::uint16_t* low = nullptr;
    if constexpr (std::same_as<T, bfloat16>) {
      low = a.low + i;
    }
    exact_floats w = load_master(a.weight + i, low, extent);
    exact_floats m = load<float>(a.m + i, extent);
    exact_floats v = load<float>(a.v + i, extent);
    vector<float> g = load<float>(a.gradient + i, extent);
    if constexpr (!std::same_as<T, G>) {
      g = rounded_to<T>(g);
    }
    kernel::adamw_rule(w, m, v, exact_floats{g}, step, [](exact_floats x) { return sqrt(x); });
    store_master(a.weight + i, low, without_nan_payload(w), extent);
    store(a.m + i, without_nan_payload(m), extent);
    store(a.v + i, without_nan_payload(v), extent);
  };
  if constexpr (std::same_as<T, bfloat16>) {
    for_streamed_vectors(first, last, a.count, update, a.weight, a.low, a.m, a.v, a.gradient);
  } else {
    for_streamed_vectors(first, last, a.count, update, a.weight, a.m, a.v, a.gradient);
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
