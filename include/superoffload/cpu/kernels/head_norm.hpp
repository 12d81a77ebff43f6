// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/head_norm.hpp>

#include <cmath>
#include <cstring>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T>
int64_t items(kernel::head_norm_forward<T> const& a) {
  return pieces_of(a.shape.rows, rows_of_item(a.shape.stride));
}

template <element T>
void run(kernel::head_norm_forward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const& s = a.shape;
  auto const [begin, end] = range_of(first, last, rows_of_item(s.stride), s.rows);
  int64_t const half = s.head_dim / 2;
  int64_t const normed = int64_t{s.heads()} * s.head_dim;
  for (auto row = begin; row < end; ++row) {
    auto const* const cosines = a.cosines + a.positions[row] * half;
    auto const* const sines = a.sines + a.positions[row] * half;
    for (int32_t head = 0; head < s.heads(); ++head) {
      auto const at = row * s.stride + int64_t{head} * s.head_dim;
      auto const* const x = a.x + at;
      auto const* const weight = a.weight + (head < s.queries ? 0 : s.head_dim);
      vector<W> squares(W{0});
      for_vectors<W>(s.head_dim, [&](int64_t i, auto extent) {
        auto const value = load<W>(x + i, extent);
        squares = squares + value * value;
      });
      auto const mean = sum_of_lanes<W>(squares) / static_cast<W>(s.head_dim);
      auto const inverse_rms = W{1} / std::sqrt(mean + static_cast<W>(a.epsilon));
      a.inverse_rms[row * s.heads() + head] = inverse_rms;
      vector<W> const factor(inverse_rms);
      for_vectors<W>(half, [&](int64_t i, auto extent) {
        auto const low = load<W>(x + i, extent) * factor * load<W>(weight + i, extent);
        auto const high = load<W>(x + half + i, extent) * factor * load<W>(weight + half + i, extent);
        auto const cosine = load<W>(cosines + i, extent);
        auto const sine = load<W>(sines + i, extent);
        store(a.y + at + i, low * cosine - high * sine, extent);
        store(a.y + at + half + i, high * cosine + low * sine, extent);
      });
    }
    if (s.stride > normed) {
      std::memcpy(a.y + row * s.stride + normed, a.x + row * s.stride + normed,
                  static_cast<std::size_t>(s.stride - normed) * sizeof(T));
    }
  }
}

template <element T>
int64_t items(kernel::head_norm_backward<T> const& a) {
  return kernel::rms_norm_blocks(a.shape.rows);
}

template <element T>
void run(kernel::head_norm_backward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const& s = a.shape;
  int64_t const half = s.head_dim / 2;
  for (auto block = first; block < last; ++block) {
    auto const [begin, end] = range_of(block, block + 1, kernel::rms_norm_block_rows(s.rows), s.rows);
    auto* const partial = a.partial == nullptr ? nullptr : a.partial + block * 2 * s.head_dim;
    for (int64_t i = 0; partial != nullptr && i < 2 * s.head_dim; ++i) { partial[i] = W{0}; }
    for (auto row = begin; row < end; ++row) {
      auto const* const cosines = a.cosines + a.positions[row] * half;
      auto const* const sines = a.sines + a.positions[row] * half;
      for (int32_t head = 0; head < s.heads(); ++head) {
        auto const of_kind = head < s.queries ? 0 : int64_t{s.head_dim};
        auto const* const weight = a.weight + of_kind;
        auto const* const x = a.x + row * s.stride + int64_t{head} * s.head_dim;
        auto* const d = a.d + row * s.stride + int64_t{head} * s.head_dim;
        vector<W> const factor(a.inverse_rms[row * s.heads() + head]);
        // f(i, extent, n_low, n_high, low, high): normed elements of both halves and their gradients, turned
        // back.
        auto const for_pairs = [&](auto&& f) {
          for_vectors<W>(half, [&](int64_t i, auto extent) {
            auto const cosine = load<W>(cosines + i, extent);
            auto const sine = load<W>(sines + i, extent);
            auto const d_low = load<W>(d + i, extent);
            auto const d_high = load<W>(d + half + i, extent);
            f(i, extent, load<W>(x + i, extent) * factor, load<W>(x + half + i, extent) * factor,
              d_low * cosine + d_high * sine, d_high * cosine - d_low * sine);
          });
        };
        vector<W> products(W{0});
        for_pairs([&](int64_t i, auto extent, auto n_low, auto n_high, auto low, auto high) {
          products = products + low * load<W>(weight + i, extent) * n_low +
                     high * load<W>(weight + half + i, extent) * n_high;
          if (partial != nullptr) {
            auto* const sums = partial + of_kind + i;
            store(sums, load<W>(sums, extent) + low * n_low, extent);
            store(sums + half, load<W>(sums + half, extent) + high * n_high, extent);
          }
        });
        vector<W> const mean(sum_of_lanes<W>(products) / static_cast<W>(s.head_dim));
        for_pairs([&](int64_t i, auto extent, auto n_low, auto n_high, auto low, auto high) {
          store(d + i, factor * (low * load<W>(weight + i, extent) - n_low * mean), extent);
          store(d + half + i, factor * (high * load<W>(weight + half + i, extent) - n_high * mean), extent);
        });
      }
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
