// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/gemm.hpp>
#include <superoffload/kernel/float8.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

inline int64_t items(kernel::largest_magnitude const& a) { return pieces_of(a.count, elements_of_item); }

inline void run(kernel::largest_magnitude const& a, int64_t first, int64_t last) {
  auto const mine = range_of(first, last, elements_of_item, a.count);
  unsigned largest = 0;
  for (auto i = mine.begin; i < mine.end; ++i) {
    unsigned const magnitude = a.x[i].bits & 0x7FFFU;
    largest = magnitude > largest ? magnitude : largest;
  }
  std::atomic_ref<std::uint32_t> const bits{*a.bits};
  auto seen = bits.load(std::memory_order_relaxed);
  while (seen < largest << 16 &&
         !bits.compare_exchange_weak(seen, largest << 16, std::memory_order_relaxed)) {}
}

/// Rows that one item quantizes, and the side of the tiles in which it transposes them.
inline constexpr int64_t float8_tile = 64;

inline int64_t items(kernel::quantize const& a) {
  return std::max<int64_t>(1, pieces_of(std::max(a.rows, a.stride), float8_tile));
}

inline void run(kernel::quantize const& a, int64_t first, int64_t last) {
  auto const scale = float8_scale::of(*a.largest);
  if (first == 0) {
    *a.inverse = scale.inverse;
  }
  for (auto item = first; item < last; ++item) {
    auto const begin = item * float8_tile;
    auto const height = std::clamp<int64_t>(a.rows - begin, 0, float8_tile);
    for (int64_t column = 0; column < a.columns; column += float8_tile) {
      auto const width = std::min(float8_tile, a.columns - column);
      std::array<std::array<float8, float8_tile>, float8_tile> tile{};  // transposed, zero below the last row
      for (int64_t r = 0; r < height; ++r) {
        auto const* const x = a.x + (begin + r) * a.columns + column;
        for (int64_t c = 0; c < width; ++c) {
          float8 const rounded{static_cast<float>(x[c]) * scale.factor};
          tile[static_cast<std::size_t>(c)][static_cast<std::size_t>(r)] = rounded;
          if (a.out != nullptr) {
            a.out[(begin + r) * a.columns + column + c] = rounded;
          }
        }
      }
      if (a.transposed == nullptr) {
        continue;
      }
      auto const length = std::min(float8_tile, a.stride - begin);
      for (int64_t c = 0; c < width; ++c) {
        std::copy_n(tile[static_cast<std::size_t>(c)].data(), length,
                    a.transposed + (column + c) * a.stride + begin);
      }
    }
  }
}

template <element Out>
int64_t items(kernel::float8_gemm<Out> const& g) {
  auto const t = tiling_of<tile_product<float>>(g.m, g.n, g.k);
  return t.down * t.across;
}

/// All numbers, by their patterns.
inline constexpr std::array<float, 256> float8_values = [] {
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = float8::from_bits(static_cast<std::uint8_t>(i));
  }
  return values;
}();

/// Widened, row by row and dense.
inline void widen_rows(float8 const* from, int64_t stride, int64_t rows, int64_t length, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < length; ++i) { to[r * length + i] = float8_values[from[r * stride + i].bits]; }
  }
}

template <element Out>
void run(kernel::float8_gemm<Out> const& g, int64_t first, int64_t last) {
  constexpr int64_t most_depth = 256;
  auto const t = tiling_of<tile_product<float>>(g.m, g.n, g.k);
  auto const depth = std::min(g.k, most_depth);
  arrays scratch{arrays::bytes_of(t.rows * t.columns, sizeof(float)) +
                 arrays::bytes_of(t.rows * depth, sizeof(float)) +
                 arrays::bytes_of(t.columns * depth, sizeof(float))};
  auto* const tile = scratch.take<float>(t.rows * t.columns);
  auto* const left = scratch.take<float>(t.rows * depth);
  auto* const right = scratch.take<float>(t.columns * depth);
  float const scale = *g.a_inverse * *g.b_inverse;

  for (auto item = first; item < last; ++item) {
    auto const [row, row_end] = range_of(item % t.down, item % t.down + 1, t.rows, g.m);
    auto const [column, column_end] = range_of(item / t.down, item / t.down + 1, t.columns, g.n);
    auto const rows = row_end - row;
    auto const columns = column_end - column;
    int64_t from = 0;
    do {
      auto const length = std::min(depth, g.k - from);
      widen_rows(g.a + row * g.k + from, g.k, rows, length, left);
      widen_rows(g.b + column * g.k + from, g.k, columns, length, right);
      multiply<float>({left, rows, length, length}, {right, length, columns, length, true}, tile, t.columns,
                      from > 0);
      from += depth;
    } while (from < g.k);
    finish_tile(g, row, column, rows, columns, [&](int64_t r, int64_t i, auto extent) {
      return load<float>(tile + r * t.columns + i, extent) * vector<float>(scale);
    });
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
