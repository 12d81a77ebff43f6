// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/cross_entropy.hpp>

#include <cmath>
#include <limits>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// One row: where the gradient overwrites wider logits, rows are read and written in a certain order.
template <element T>
int64_t items(kernel::cross_entropy<T> const& a) {
  return a.rows;
}

template <element T>
void run(kernel::cross_entropy<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  for (auto row = first; row < last; ++row) {
    auto const* const logits = a.logits + row * a.vocabulary;
    auto* const d_logits = a.d_logits == nullptr ? nullptr : a.d_logits + row * a.vocabulary;
    auto const target = a.targets[row];
    if (target < 0) {
      a.row_loss[row] = W{0};
      if (d_logits != nullptr) {
        vector<W> const zero(W{0});
        for_vectors<W>(a.vocabulary, [&](int64_t i, auto extent) { store(d_logits + i, zero, extent); });
      }
      continue;
    }
    auto constexpr lowest = -std::numeric_limits<W>::infinity();
    vector<W> highest(lowest);
    for_vectors<W>(a.vocabulary, [&](int64_t i, auto extent) {
      highest = max(highest, filled<W>(load<W>(logits + i, extent), lowest, extent));
    });
    auto const top = max_of_lanes<W>(highest);
    vector<W> const shift(top);
    vector<W> sums(W{0});
    for_vectors<W>(a.vocabulary, [&](int64_t i, auto extent) {
      sums = sums + filled<W>(exp(load<W>(logits + i, extent) - shift), W{0}, extent);
    });
    auto const total = sum_of_lanes<W>(sums);
    auto const target_logit = logits[target];
    a.row_loss[row] = std::log(total) + (top - target_logit);
    if (d_logits == nullptr) {
      continue;
    }
    auto const scale = static_cast<W>(a.scale);
    auto const at_target = (std::exp(target_logit - top) / total - W{1}) * scale;
    vector<W> const factor(scale / total);
    // Upwards, and each vector read before it is written: then the gradient may replace the logits.
    for_vectors<W>(a.vocabulary, [&](int64_t i, auto extent) {
      store(d_logits + i, exp(load<W>(logits + i, extent) - shift) * factor, extent);
    });
    d_logits[target] = T(at_target);
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
