// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/tile_gemm.hpp>
#include <superoffload/kernel/gemm.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// How a GEMM is cut: by its shape alone.
struct tiling {
  int64_t rows = 192, columns = 256;
  int64_t across, down;
};

/// Tiles of 192 x 256 keep the panels in the second cache; smaller ones where that would leave threads idle,
/// as long as a tile is worth a thread's attention.
constexpr tiling tiling_of(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t wanted_tiles = 64;
  constexpr int64_t least_work = 1 << 20;  // multiplications
  tiling t{};
  while (pieces_of(m, t.rows) * pieces_of(n, t.columns) < wanted_tiles && t.rows > 48 &&
         t.rows * t.columns / 2 * k >= least_work) {
    (t.columns > t.rows ? t.columns : t.rows) /= 2;
  }
  t.down = pieces_of(m, t.rows);
  t.across = pieces_of(n, t.columns);
  return t;
}

/// Depth of the panels that are widened at a time.
inline constexpr int64_t panel_depth = 256;

template <element T, element Out>
int64_t items(kernel::gemm<T, Out> const& g) {
  auto const t = tiling_of(g.m, g.n, g.k);
  return t.down * t.across;
}

template <element T, element Out>
void run(kernel::gemm<T, Out> const& g, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const t = tiling_of(g.m, g.n, g.k);
  operand<T> const a{g.a, g.m, g.k, g.transpose_a ? g.m : g.k, g.transpose_a};
  operand<T> const b{g.b, g.k, g.n, g.transpose_b ? g.k : g.n, g.transpose_b};
  constexpr bool widens = !std::same_as<T, W>;
  auto const depth = widens ? panel_depth : g.k;
  arrays scratch{arrays::bytes_of(t.rows * t.columns, sizeof(W)) +
                 (widens ? arrays::bytes_of((t.rows + t.columns) * depth, sizeof(W)) : 0)};
  auto* const tile = scratch.take<W>(t.rows * t.columns);
  auto* const panels = widens ? scratch.take<W>((t.rows + t.columns) * depth) : nullptr;

  for (auto item = first; item < last; ++item) {
    auto const [row, row_end] = range_of(item % t.down, item % t.down + 1, t.rows, g.m);
    auto const [column, column_end] = range_of(item / t.down, item / t.down + 1, t.columns, g.n);
    auto const rows = row_end - row;
    auto const columns = column_end - column;
    if constexpr (widens) {
      for (int64_t from = 0; from < g.k || from == 0; from += depth) {
        auto const length = g.k - from < depth ? g.k - from : depth;
        auto const left = widened<T>(a.block(row, from, rows, length), panels);
        auto const right = widened<T>(b.block(from, column, length, columns), panels + t.rows * depth);
        multiply<W>(left, right, tile, columns, from > 0);
      }
    } else {
      multiply<W>(a.block(row, 0, rows, g.k), b.block(0, column, g.k, columns), tile, columns, false);
    }
    for (int64_t r = 0; r < rows; ++r) {
      auto const* const from = tile + r * columns;
      auto* const to = g.c + (row + r) * g.n + column;
      auto const* const bias = g.bias == nullptr ? nullptr : g.bias + column;
      auto const* const addend = g.addend == nullptr ? nullptr : g.addend + (row + r) * g.n + column;
      for_vectors<W>(columns, [&](int64_t i, auto extent) {
        auto x = load<W>(from + i, extent);
        if (bias != nullptr) {
          x = x + load<W>(bias + i, extent);
        }
        if (addend != nullptr) {
          x = x + load<W>(addend + i, extent);
        }
        if (g.accumulate) {
          x = load<W>(to + i, extent) + x;
        }
        store(to + i, x, extent);
      });
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
