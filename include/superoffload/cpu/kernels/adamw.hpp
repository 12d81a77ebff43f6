// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/kernels/adamw_state.hpp>
#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/adamw.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T, element G, state_format F>
int64_t items(kernel::adamw<T, G, F> const& a) {
  return pieces_of(a.count, elements_of_item);
}

template <element T, element G, state_format F>
void run(kernel::adamw<T, G, F> const& a, int64_t first, int64_t last) {
  using group = adamw_group<T, F>;
  auto const low_of = [=](int64_t i) -> kernel::low_bits<F>* {
    if constexpr (std::same_as<T, bfloat16>) {
      return a.low + i;
    } else {
      return nullptr;
    }
  };
  auto const update = [=](int64_t i, auto extent) SUPEROFFLOAD_ALWAYS_INLINE {
    group state;
    for (int k = 0; k < group::n; ++k) {
      state.master[k] = load_master(a.weight + i + group::at(k), low_of(i + group::at(k)), extent);
    }
    state.load_moments(a, i, extent);
    state.advance(a.gradient, i, a.step, a.index, extent);
    for (int k = 0; k < group::n; ++k) {
      store_master(a.weight + i + group::at(k), low_of(i + group::at(k)), state.stored_master(k), extent);
    }
    state.store_moments(a, i, a.step, extent);
  };
  if constexpr (std::same_as<T, bfloat16>) {
    for_streamed_groups<F>(first, last, a.count, update, a.weight, a.low, a.m, a.v, a.gradient);
  } else {
    for_streamed_groups<F>(first, last, a.count, update, a.weight, a.m, a.v, a.gradient);
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
