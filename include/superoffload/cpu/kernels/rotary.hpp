// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/rotary.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T>
int64_t items(kernel::rotary<T> const& a) {
  return pieces_of(a.rows, rows_of_item(int64_t{a.heads} * a.head_dim));
}

template <element T>
void run(kernel::rotary<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const [begin, end] = range_of(first, last, rows_of_item(int64_t{a.heads} * a.head_dim), a.rows);
  int64_t const half = a.turned / 2;
  vector<W> const direction(a.inverse ? W{-1} : W{1});
  for (auto row = begin; row < end; ++row) {
    auto const* const cosines = a.cosines + a.positions[row] * half;
    auto const* const sines = a.sines + a.positions[row] * half;
    for (int32_t head = 0; head < a.heads; ++head) {
      auto* const low = a.x + row * a.stride + int64_t{head} * a.head_dim;
      auto* const high = low + half;
      for_vectors<W>(half, [&](int64_t i, auto extent) {
        auto const cosine = load<W>(cosines + i, extent);
        auto const sine = load<W>(sines + i, extent) * direction;
        auto const x = load<W>(low + i, extent);
        auto const y = load<W>(high + i, extent);
        store(low + i, x * cosine - y * sine, extent);
        store(high + i, y * cosine + x * sine, extent);
      });
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
