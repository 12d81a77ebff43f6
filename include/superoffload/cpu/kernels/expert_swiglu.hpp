// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/swiglu.hpp>
#include <superoffload/kernel/expert_swiglu.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Gates and ups of one vector, clamped where they are, and whether their gradients pass (1 or 0).
template <class W>
struct gates_and_ups {
  vector<W> gate, up, gate_passes, up_passes;
};

template <class W>
constexpr int count_of(whole) {
  return lanes<W>;
}
template <class W>
constexpr int count_of(part some) {
  return some.count;
}

/// Columns [i, ...) of a row.
template <element T, class Extent>
gates_and_ups<wide<T>> clamped_gates(T const* row, int64_t i, Extent extent, double limit_of_both) {
  using W = wide<T>;
  auto const limit = static_cast<W>(limit_of_both);
  W gate[lanes<W>]{}, up[lanes<W>]{}, gate_passes[lanes<W>]{}, up_passes[lanes<W>]{};
  for (int j = 0; j < count_of<W>(extent); ++j) {
    W const g = static_cast<W>(row[2 * (i + j)]);
    W const u = static_cast<W>(row[2 * (i + j) + 1]);
    gate[j] = g > limit ? limit : g;  // so that what is not a number stays so
    up[j] = u > limit ? limit : u < -limit ? -limit : u;
    gate_passes[j] = g > limit ? 0 : 1;
    up_passes[j] = u > limit || u < -limit ? 0 : 1;
  }
  return {load<W>(gate, whole{}), load<W>(up, whole{}), load<W>(gate_passes, whole{}),
          load<W>(up_passes, whole{})};
}

template <element T>
int64_t items(kernel::expert_swiglu_forward<T> const& a) {
  return pieces_of(a.rows, rows_of_item(a.columns));
}

template <element T>
void run(kernel::expert_swiglu_forward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const [begin, end] = range_of(first, last, rows_of_item(a.columns), a.rows);
  vector<W> const one(W{1}), slope(static_cast<W>(kernel::clamped_gate_slope));
  for (auto row = begin; row < end; ++row) {
    auto const* const gate_up = a.gate_up + 2 * row * a.columns;
    auto* const out = a.out + row * a.columns;
    vector<W> const weight(a.weights[a.order[row]]);
    for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
      if (a.gate == kernel::expert_gate::silu) {
        auto const g = load<W>(gate_up + i, extent);
        store(out + i, g * sigmoid<W>(g) * load<W>(gate_up + a.columns + i, extent) * weight, extent);
      } else {
        auto const x = clamped_gates<T>(gate_up, i, extent, a.limit);
        store(out + i, x.gate * sigmoid<W>(slope * x.gate) * (x.up + one) * weight, extent);
      }
    });
  }
}

template <element T>
int64_t items(kernel::expert_swiglu_backward<T> const& a) {
  return pieces_of(a.rows, rows_of_item(a.columns));
}

template <element T>
void run(kernel::expert_swiglu_backward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const [begin, end] = range_of(first, last, rows_of_item(a.columns), a.rows);
  vector<W> const one(W{1}), slope(static_cast<W>(kernel::clamped_gate_slope));
  for (auto row = begin; row < end; ++row) {
    auto const* const gate_up = a.gate_up + 2 * row * a.columns;
    auto* const d_gate_up = a.d_gate_up + 2 * row * a.columns;
    auto const* const d_out = a.d_out + row * a.columns;
    auto* const out = a.out + row * a.columns;
    vector<W> const weight(a.weights[a.order[row]]);
    vector<W> products(W{0});
    for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
      auto const d = load<W>(d_out + i, extent);
      if (a.gate == kernel::expert_gate::silu) {
        auto const g = load<W>(gate_up + i, extent);
        auto const u = load<W>(gate_up + a.columns + i, extent);
        auto const s = sigmoid<W>(g);
        products = products + d * (g * s * u);
        store(out + i, g * s * u * weight, extent);
        store(d_gate_up + i, weight * d * u * s * (one + g * (one - s)), extent);
        store(d_gate_up + a.columns + i, weight * d * g * s, extent);
      } else {
        auto const x = clamped_gates<T>(gate_up, i, extent, a.limit);
        auto const s = sigmoid<W>(slope * x.gate);
        auto const up = x.up + one;
        products = products + d * (x.gate * s * up);
        store(out + i, x.gate * s * up * weight, extent);
        W d_gate[lanes<W>], d_up[lanes<W>];
        store(d_gate, x.gate_passes * (weight * d * up * s * (one + slope * x.gate * (one - s))), whole{});
        store(d_up, x.up_passes * (weight * d * x.gate * s), whole{});
        for (int j = 0; j < count_of<W>(extent); ++j) {
          d_gate_up[2 * (i + j)] = static_cast<T>(d_gate[j]);
          d_gate_up[2 * (i + j) + 1] = static_cast<T>(d_up[j]);
        }
      }
    });
    a.d_weights[a.order[row]] = sum_of_lanes<W>(products);
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
