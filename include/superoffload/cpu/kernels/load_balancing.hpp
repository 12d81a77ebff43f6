// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/load_balancing.hpp>

#include <algorithm>
#include <cmath>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Calls use(expert, probability) for every expert of a row, in order; `highest` is the highest logit.
template <element T, class Use>
void for_probabilities(T const* logits, int64_t experts, wide<T> highest, Use const& use) {
  using W = wide<T>;
  W total = 0;
  for (int64_t e = 0; e < experts; ++e) { total += std::exp(static_cast<W>(logits[e]) - highest); }
  for (int64_t e = 0; e < experts; ++e) { use(e, std::exp(static_cast<W>(logits[e]) - highest) / total); }
}

template <element T>
int64_t items(kernel::expert_load<T> const& a) {
  return kernel::load_pieces(a.shape.rows);
}

template <element T>
void run(kernel::expert_load<T> const& a, int64_t first, int64_t last) {
  auto const& s = a.shape;
  for (auto piece = first; piece < last; ++piece) {
    auto* const choices = a.load + piece * 2 * s.experts;
    auto* const probabilities = choices + s.experts;
    std::fill(choices, probabilities + s.experts, 0.0);
    auto const [begin, end] = range_of(piece, piece + 1, kernel::load_rows, s.rows);
    for (auto row = begin; row < end; ++row) {
      if (a.padding != nullptr && a.padding[row] != 0) {
        continue;
      }
      auto const* const logits = a.logits + row * s.experts;
      auto const* const chosen = a.chosen + row * s.each;
      for (int32_t c = 0; c < s.each; ++c) { choices[chosen[c]] += 1.0; }
      for_probabilities(logits, s.experts, static_cast<wide<T>>(logits[chosen[0]]),
                        [&](int64_t e, wide<T> p) { probabilities[e] += static_cast<double>(p); });
    }
  }
}

inline int64_t items(kernel::load_balancing_loss const&) { return 1; }

inline void run(kernel::load_balancing_loss const& a, int64_t, int64_t) {
  auto const experts = static_cast<double>(a.experts);
  double all_choices = 0.0, products = 0.0;
  for (int64_t e = 0; e < a.experts; ++e) {
    double choices = 0.0, probabilities = 0.0;
    for (int64_t part = 0; part < a.parts; ++part) {
      choices += a.load[2 * part * a.experts + e];
      probabilities += a.load[(2 * part + 1) * a.experts + e];
    }
    a.slope[e] = choices;
    all_choices += choices;
    products += choices * probabilities;
  }
  auto const rows = all_choices / a.each;
  auto const scale = rows > 0.0 ? a.weight * experts / (rows * rows) : 0.0;
  for (int64_t e = 0; e < a.experts; ++e) { a.slope[e] *= scale; }
  *a.total += a.divisor * scale * products;
}

template <element T>
int64_t items(kernel::load_balancing_backward<T> const& a) {
  return pieces_of(a.shape.rows, rows_of_item(a.shape.experts));
}

template <element T>
void run(kernel::load_balancing_backward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const& s = a.shape;
  auto const [begin, end] = range_of(first, last, rows_of_item(s.experts), s.rows);
  for (auto row = begin; row < end; ++row) {
    if (a.padding != nullptr && a.padding[row] != 0) {
      continue;
    }
    auto const* const logits = a.logits + row * s.experts;
    auto const highest = static_cast<W>(logits[a.chosen[row * s.each]]);
    auto* const d_logits = a.d_logits + row * s.experts;
    W mean = 0;
    for_probabilities(logits, s.experts, highest,
                      [&](int64_t e, W p) { mean += p * static_cast<W>(a.slope[e]); });
    for_probabilities(logits, s.experts, highest, [&](int64_t e, W p) {
      d_logits[e] = static_cast<T>(static_cast<W>(d_logits[e]) + p * (static_cast<W>(a.slope[e]) - mean));
    });
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
