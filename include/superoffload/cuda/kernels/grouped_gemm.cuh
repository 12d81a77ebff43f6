// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/reduction.cuh>
#include <superoffload/kernel/grouped_gemm.hpp>

namespace superoffload::cuda::kernels {

/// The tiles of all groups, counted through: a group of n rows has pieces_of(n, rows of a tile) in a column
/// of tiles. Asked for tiles in rising order.
class group_tiles {
public:
  __device__ group_tiles(kernel::row_groups const& of, int tile_rows)
      : starts_{of.starts}, groups_{static_cast<int>(of.groups)}, tile_rows_{tile_rows} {
    look();
  }

  struct place {
    int group;        ///< negative: there are no more tiles
    int start, rows;  ///< of the group
    int first;        ///< row of the tile in its group
    int across;       ///< its number in the row of tiles
  };

  /// With `across` tiles side by side; those of one column come one behind the other.
  __device__ place at(int tile, int across) {
    while (group_ < groups_ && tile >= before_ + down_ * across) {
      before_ += down_ * across;
      ++group_;
      look();
    }
    if (group_ >= groups_) {
      return {-1, 0, 0, 0, 0};
    }
    auto const own = tile - before_;
    return {group_, start_, rows_, own % down_ * tile_rows_, own / down_};
  }

private:
  __device__ void look() {
    if (group_ < groups_) {
      start_ = starts_[group_];
      rows_ = starts_[group_ + 1] - start_;
      down_ = (rows_ + tile_rows_ - 1) / tile_rows_;
    }
  }

  int32_t const* starts_;
  int groups_, tile_rows_;
  int group_ = 0, start_ = 0, rows_ = 0, down_ = 0;
  int before_ = 0;  ///< tiles of the groups before
};

inline constexpr int grouped_tile = 16;

/// The sum over l of left(y, l) * right(l, x) for l below `depth`, in their order, by a block of 16 x 16
/// threads.
template <class W, class Left, class Right>
__device__ __forceinline__ W tile_gemm(int64_t depth, Left left, Right right) {
  __shared__ W a[grouped_tile][grouped_tile + 1];
  __shared__ W b[grouped_tile][grouped_tile + 1];
  int const x = static_cast<int>(threadIdx.x) % grouped_tile;
  int const y = static_cast<int>(threadIdx.x) / grouped_tile;
  W sum = 0;
  for (int64_t from = 0; from < depth; from += grouped_tile) {
    a[y][x] = from + x < depth ? left(y, from + x) : W{0};
    b[y][x] = from + y < depth ? right(from + y, x) : W{0};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < grouped_tile; ++i) { sum += a[y][i] * b[i][x]; }
    __syncthreads();
  }
  return sum;
}

template <class T>
__global__ void grouped_gemm_kernel(kernel::grouped_gemm<T> g, int across) {
  using W = wide<T>;
  auto const at = group_tiles{g.of, grouped_tile}.at(static_cast<int>(blockIdx.x), across);
  if (at.group < 0) {
    return;
  }
  auto const* const a = g.a + static_cast<int64_t>(at.start) * g.k;
  auto const* const b = g.b + at.group * g.k * g.n;
  auto const first_column = static_cast<int64_t>(at.across) * grouped_tile;
  auto sum = tile_gemm<W>(
      g.k,
      [&](int y, int64_t l) { return at.first + y < at.rows ? widen(a[(at.first + y) * g.k + l]) : W{0}; },
      [&](int64_t l, int x) {
        auto const column = first_column + x;
        return column < g.n ? widen(b[g.transpose_b ? column * g.k + l : l * g.n + column]) : W{0};
      });
  auto const row = at.first + static_cast<int>(threadIdx.x) / grouped_tile;
  auto const column = first_column + static_cast<int>(threadIdx.x) % grouped_tile;
  if (row < at.rows && column < g.n) {
    if (g.bias != nullptr) {
      sum += widen(g.bias[at.group * g.n + column]);
    }
    g.c[(static_cast<int64_t>(at.start) + row) * g.n + column] = narrow<T>(sum);
  }
}

template <class T, class Out>
__global__ void grouped_outer_kernel(kernel::grouped_outer<T, Out> g, int64_t down, int64_t across) {
  using W = wide<T>;
  auto const group = blockIdx.x / (down * across);
  auto const first_row = blockIdx.x / across % down * grouped_tile;
  auto const first_column = blockIdx.x % across * grouped_tile;
  int64_t const start = g.of.starts[group];
  auto const* const a = g.a + start * g.m;
  auto const* const b = g.b + start * g.n;
  auto sum = tile_gemm<W>(
      g.of.starts[group + 1] - start,
      [&](int y, int64_t l) { return first_row + y < g.m ? widen(a[l * g.m + first_row + y]) : W{0}; },
      [&](int64_t l, int x) { return first_column + x < g.n ? widen(b[l * g.n + first_column + x]) : W{0}; });
  auto const row = first_row + static_cast<int64_t>(threadIdx.x) / grouped_tile;
  auto const column = first_column + static_cast<int64_t>(threadIdx.x) % grouped_tile;
  if (row < g.m && column < g.n) {
    auto const at = (group * g.m + row) * g.n + column;
    if (g.accumulate) {
      sum += widen(g.c[at]);
    }
    g.c[at] = narrow<Out>(sum);
  }
}

inline constexpr int grouped_sum_threads = 256;

template <class T, class Out>
__global__ void __launch_bounds__(grouped_sum_threads)
    grouped_column_sum_kernel(kernel::grouped_column_sum<T, Out> a, int64_t strips, bool whole) {
  auto const group = blockIdx.x / strips;
  int64_t const start = a.of.starts[group];
  sum_columns(kernel::column_sum<T, Out>{a.x + start * a.columns, a.out + group * a.columns,
                                         a.of.starts[group + 1] - start, a.columns, a.accumulate},
              blockIdx.x % strips, whole);
}

template <element T, element Out>
void run(stream& on, kernel::grouped_column_sum<T, Out> const& a) {
  auto const strips = pieces_of(a.columns, column_words * word<T>);
  start(on, grouped_column_sum_kernel<T, Out>, a.of.groups * strips, grouped_sum_threads, 0, a, strips,
        whole_words(a.columns, a.x));
}

}  // namespace superoffload::cuda::kernels
