// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/routing.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <class W>
W routing_key(W logit) {
  return logit == logit ? logit : -std::numeric_limits<W>::infinity();
}

template <element T>
int64_t items(kernel::route_forward<T> const& a) {
  return pieces_of(a.shape.rows, rows_of_item(a.shape.experts * a.shape.each));
}

template <element T>
void run(kernel::route_forward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const& s = a.shape;
  auto const [begin, end] = range_of(first, last, rows_of_item(s.experts * s.each), s.rows);
  for (auto row = begin; row < end; ++row) {
    auto const* const logits = a.logits + row * s.experts;
    auto* const chosen = a.chosen + row * s.each;
    auto* const weights = a.weights + row * s.each;
    for (int32_t choice = 0; choice < s.each; ++choice) {
      // The first in the order of logits and numbers that comes behind the choice before.
      int64_t best = -1;
      for (int64_t e = 0; e < s.experts; ++e) {
        auto const key = routing_key<W>(logits[e]);
        if (choice > 0) {
          auto const before = routing_key<W>(logits[chosen[choice - 1]]);
          if (key > before || (key == before && e <= chosen[choice - 1])) {
            continue;
          }
        }
        if (best < 0 || key > routing_key<W>(logits[best])) {
          best = e;
        }
      }
      chosen[choice] = static_cast<int32_t>(best);
    }
    auto const highest = static_cast<W>(logits[chosen[0]]);
    W total = 0;
    if (s.normalised) {
      for (int32_t c = 0; c < s.each; ++c) { total += std::exp(static_cast<W>(logits[chosen[c]]) - highest); }
    } else {
      for (int64_t e = 0; e < s.experts; ++e) { total += std::exp(static_cast<W>(logits[e]) - highest); }
    }
    for (int32_t c = 0; c < s.each; ++c) {
      weights[c] = std::exp(static_cast<W>(logits[chosen[c]]) - highest) / total;
    }
    if (a.dense != nullptr) {
      auto* const dense = a.dense + row * s.experts;
      std::memset(static_cast<void*>(dense), 0, static_cast<std::size_t>(s.experts) * sizeof(T));
      for (int32_t c = 0; c < s.each; ++c) { dense[chosen[c]] = static_cast<T>(weights[c]); }
    }
  }
}

template <element T>
int64_t items(kernel::route_backward<T> const& a) {
  return pieces_of(a.shape.rows, rows_of_item(a.shape.experts * a.shape.each));
}

template <element T>
void run(kernel::route_backward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const& s = a.shape;
  auto const [begin, end] = range_of(first, last, rows_of_item(s.experts * s.each), s.rows);
  for (auto row = begin; row < end; ++row) {
    auto const* const logits = a.logits + row * s.experts;
    auto const* const chosen = a.chosen + row * s.each;
    auto const* const weights = a.weights + row * s.each;
    auto* const d_logits = a.d_logits + row * s.experts;
    auto const d_weight = [&](int32_t c) {
      auto const d = a.d_weights[row * s.each + c];
      return a.d_dense == nullptr ? d : d + static_cast<W>(a.d_dense[row * s.experts + chosen[c]]);
    };
    W mean = 0;  // of the gradients, by weight
    for (int32_t c = 0; c < s.each; ++c) { mean += weights[c] * d_weight(c); }
    // The weight of any expert is that of the first choice times exp(logit - logit of the first choice).
    for (int64_t e = 0; e < s.experts; ++e) {
      W const probability =
          s.normalised ? W{0}
                       : weights[0] * std::exp(static_cast<W>(logits[e]) - static_cast<W>(logits[chosen[0]]));
      d_logits[e] = static_cast<T>(-probability * mean);
    }
    for (int32_t c = 0; c < s.each; ++c) {
      d_logits[chosen[c]] = static_cast<T>(weights[c] * (d_weight(c) - mean));
    }
  }
}

/// An item is an expert, which looks through all choices.
inline int64_t items(kernel::group_choices const& a) { return a.experts; }

inline void run(kernel::group_choices const& a, int64_t first, int64_t last) {
  for (auto expert = first; expert < last; ++expert) {
    int32_t place = 0;
    for (int64_t c = 0; c < a.choices; ++c) { place += a.chosen[c] < expert ? 1 : 0; }
    a.starts[expert] = place;
    for (int64_t c = 0; c < a.choices; ++c) {
      if (a.chosen[c] == expert) {
        a.order[place] = static_cast<int32_t>(c);
        a.places[c] = place++;
      }
    }
    if (expert + 1 == a.experts) {
      a.starts[a.experts] = place;
    }
  }
}

template <element T>
int64_t items(kernel::gather_rows<T> const& a) {
  return pieces_of(a.choices, rows_of_item(a.columns));
}

template <element T>
void run(kernel::gather_rows<T> const& a, int64_t first, int64_t last) {
  auto const [begin, end] = range_of(first, last, rows_of_item(a.columns), a.choices);
  for (auto i = begin; i < end && a.columns > 0; ++i) {
    std::memcpy(static_cast<void*>(a.out + i * a.columns), a.x + a.order[i] / a.each * a.columns,
                static_cast<std::size_t>(a.columns) * sizeof(T));
  }
}

template <element T>
int64_t items(kernel::combine_rows<T> const& a) {
  return pieces_of(a.rows, rows_of_item(a.columns * a.each));
}

template <element T>
void run(kernel::combine_rows<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const [begin, end] = range_of(first, last, rows_of_item(a.columns * a.each), a.rows);
  for (auto row = begin; row < end; ++row) {
    auto const* const places = a.places + row * a.each;
    for_vectors<W>(a.columns, [&](int64_t i, auto extent) {
      vector<W> sum(W{0});
      if (a.addend != nullptr) {
        sum = load<W>(a.addend + row * a.columns + i, extent);
      }
      for (int32_t c = 0; c < a.each; ++c) {
        sum = sum + load<W>(a.grouped + places[c] * a.columns + i, extent);
      }
      store(a.out + row * a.columns + i, sum, extent);
    });
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
