// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/amx_gemm.hpp>
#include <superoffload/cpu/kernels/dot_gemm.hpp>
#include <superoffload/cpu/kernels/tile_gemm.hpp>
#include <superoffload/kernel/gemm.hpp>

#include <type_traits>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// How a GEMM is cut: by its shape alone.
struct tiling {
  int64_t rows, columns;
  int64_t across = 0, down = 0;
};

/// Tiles whose panels stay in the second cache; smaller ones where those would leave threads idle, as long as
/// a tile is worth a thread's attention.
template <class Product>
constexpr tiling tiling_of(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t least_work = 1 << 20;  // multiplications
  tiling t{.rows = Product::tile_rows, .columns = Product::tile_columns};
  while (pieces_of(m, t.rows) * pieces_of(n, t.columns) < Product::wanted_tiles && t.rows > 48 &&
         t.rows * t.columns / 2 * k >= least_work) {
    (t.columns > t.rows ? t.columns : t.rows) /= 2;
  }
  t.down = pieces_of(m, t.rows);
  t.across = pieces_of(n, t.columns);
  return t;
}

template <element T, element Out>
int64_t items(kernel::gemm<T, Out> const& g) {
  auto const t = tiling_of<tile_product<T>>(g.m, g.n, g.k);
  return t.down * t.across;
}

/// A tile of a GEMM's c from its sums: sum(r, i, extent) are those of row r from column i on.
template <class Gemm, class Sum>
void finish_tile(Gemm const& g, int64_t row, int64_t column, int64_t rows, int64_t columns, Sum const& sum) {
  using W = wide<std::remove_pointer_t<decltype(g.c)>>;
  for (int64_t r = 0; r < rows; ++r) {
    auto* const to = g.c + (row + r) * g.n + column;
    auto const* const bias = g.bias == nullptr ? nullptr : g.bias + column;
    auto const* const addend = g.addend == nullptr ? nullptr : g.addend + (row + r) * g.n + column;
    for_vectors<W>(columns, [&](int64_t i, auto extent) {
      auto x = sum(r, i, extent);
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

template <element T, element Out>
void run(kernel::gemm<T, Out> const& g, int64_t first, int64_t last) {
  using W = wide<T>;
  using product = tile_product<T>;
  auto const t = tiling_of<product>(g.m, g.n, g.k);
  operand<T> const a{g.a, g.m, g.k, g.transpose_a ? g.m : g.k, g.transpose_a};
  operand<T> const b{g.b, g.k, g.n, g.transpose_b ? g.k : g.n, g.transpose_b};
  auto const depth = product::depth_of(g.k);
  auto const height = pieces_of(t.rows, product::row_grid) * product::row_grid;
  auto const stride = pieces_of(t.columns, product::column_grid) * product::column_grid;
  arrays scratch{arrays::bytes_of(height * stride, sizeof(W)) +
                 product::scratch_bytes(t.rows, t.columns, depth)};
  auto* const tile = scratch.take<W>(height * stride);
  product const multiply_tile{scratch, t.rows, t.columns, depth};

  for (auto item = first; item < last; ++item) {
    auto const [row, row_end] = range_of(item % t.down, item % t.down + 1, t.rows, g.m);
    auto const [column, column_end] = range_of(item / t.down, item / t.down + 1, t.columns, g.n);
    auto const rows = row_end - row;
    auto const columns = column_end - column;
    int64_t from = 0;
    do {
      auto const length = g.k - from < depth ? g.k - from : depth;
      multiply_tile(a.block(row, from, rows, length), b.block(from, column, length, columns), tile, stride,
                    from > 0);
      from += depth;
    } while (from < g.k);
    finish_tile(g, row, column, rows, columns,
                [&](int64_t r, int64_t i, auto extent) { return load<W>(tile + r * stride + i, extent); });
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
