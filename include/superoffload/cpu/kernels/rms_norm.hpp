// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/rms_norm.hpp>

#include <cmath>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T>
int64_t items(kernel::rms_norm_forward<T> const& a) {
  return pieces_of(a.rows, rows_of_item(a.columns));
}

template <element T>
void run(kernel::rms_norm_forward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const [begin, end] = range_of(first, last, rows_of_item(a.columns), a.rows);
  for (auto row = begin; row < end; ++row) {
    auto const* const x = a.x + row * a.columns;
    auto* const y = a.y + row * a.columns;
    vector<W> squares(W{0});
    for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
      auto const value = load<W>(x + i, extent);
      squares = squares + value * value;
    });
    auto const mean = a.columns == 0 ? W{0} : sum_of_lanes<W>(squares) / static_cast<W>(a.columns);
    auto const inverse_rms = W{1} / std::sqrt(mean + static_cast<W>(a.epsilon));
    a.inverse_rms[row] = inverse_rms;
    vector<W> const factor(inverse_rms);
    for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
      store(y + i, load<W>(x + i, extent) * factor * load<W>(a.weight + i, extent), extent);
    });
  }
}

template <element T>
int64_t items(kernel::rms_norm_backward<T> const& a) {
  return kernel::rms_norm_blocks(a.rows);
}

template <element T>
void run(kernel::rms_norm_backward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  for (auto block = first; block < last; ++block) {
    auto const [begin, end] = range_of(block, block + 1, kernel::rms_norm_block_rows(a.rows), a.rows);
    auto* const partial = a.partial == nullptr ? nullptr : a.partial + block * a.columns;
    for (auto row = begin; row < end; ++row) {
      bool const starts = row == begin;
      auto const* const d_y = a.d_y + row * a.columns;
      auto const* const x = a.x + row * a.columns;
      auto* const d_x = a.d_x + row * a.columns;
      vector<W> const factor(a.inverse_rms[row]);
      vector<W> products(W{0});
      for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
        auto const n = load<W>(x + i, extent) * factor;
        products = products + load<W>(d_y + i, extent) * load<W>(a.weight + i, extent) * n;
      });
      auto const columns = a.columns == 0 ? W{1} : static_cast<W>(a.columns);
      vector<W> const mean(sum_of_lanes<W>(products) / columns);
      for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
        auto const d = load<W>(d_y + i, extent);
        auto const n = load<W>(x + i, extent) * factor;
        if (partial != nullptr) {
          auto const product = d * n;
          store(partial + i, starts ? product : load<W>(partial + i, extent) + product, extent);
        }
        auto gradient = factor * (d * load<W>(a.weight + i, extent) - n * mean);
        if (a.accumulate) {
          gradient = load<W>(d_x + i, extent) + gradient;
        }
        store(d_x + i, gradient, extent);
      });
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
