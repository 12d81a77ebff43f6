// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/swiglu.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <class W>
vector<W> sigmoid(vector<W> x) {
  return vector<W>(W{1}) / (vector<W>(W{1}) + exp(-x));
}

template <element T>
int64_t items(kernel::swiglu_forward<T> const& a) {
  return pieces_of(a.rows, rows_of_item(a.columns));
}

template <element T>
void run(kernel::swiglu_forward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const [begin, end] = range_of(first, last, rows_of_item(a.columns), a.rows);
  for (auto row = begin; row < end; ++row) {
    auto const* const gate = a.gate_up + 2 * row * a.columns;
    auto const* const up = gate + a.columns;
    auto* const out = a.out + row * a.columns;
    for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
      auto const g = load<W>(gate + i, extent);
      store(out + i, g * sigmoid<W>(g) * load<W>(up + i, extent), extent);
    });
  }
}

template <element T>
int64_t items(kernel::swiglu_backward<T> const& a) {
  return pieces_of(a.rows, rows_of_item(a.columns));
}

template <element T>
void run(kernel::swiglu_backward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const [begin, end] = range_of(first, last, rows_of_item(a.columns), a.rows);
  vector<W> const one(W{1});
  for (auto row = begin; row < end; ++row) {
    auto const* const d_out = a.d_out + row * a.columns;
    auto const* const gate = a.gate_up + 2 * row * a.columns;
    auto const* const up = gate + a.columns;
    auto* const d_gate = a.d_gate_up + 2 * row * a.columns;
    auto* const d_up = d_gate + a.columns;
    auto* const out = a.out + row * a.columns;
    for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
      auto const d = load<W>(d_out + i, extent);
      auto const g = load<W>(gate + i, extent);
      auto const u = load<W>(up + i, extent);
      auto const s = sigmoid<W>(g);
      store(d_gate + i, d * u * s * (one + g * (one - s)), extent);
      store(d_up + i, d * g * s, extent);
      store(out + i, g * s * u, extent);
    });
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
