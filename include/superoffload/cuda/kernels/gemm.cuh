// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/gemms.hpp>
#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/gemm.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int gemm_tile = 16;

/// Element (row, column) of a GEMM's c from the sum of its products, unless it lies outside.
template <class Gemm, class W>
__device__ __forceinline__ void finish(Gemm const& g, int64_t row, int64_t column, W sum) {
  if (row >= g.m || column >= g.n) {
    return;
  }
  auto const at = row * g.n + column;
  if (g.bias != nullptr) {
    sum += widen(g.bias[column]);
  }
  if (g.addend != nullptr) {
    sum += widen(g.addend[at]);
  }
  if (g.accumulate) {
    sum += widen(g.c[at]);
  }
  g.c[at] = narrow<std::remove_pointer_t<decltype(g.c)>>(sum);
}

/// Any GEMM, element by element: for what cuBLASLt does not do.
template <class T, class Out>
__global__ void gemm_kernel(kernel::gemm<T, Out> g, int64_t across) {
  using W = wide<T>;
  __shared__ W a[gemm_tile][gemm_tile + 1];
  __shared__ W b[gemm_tile][gemm_tile + 1];
  int const x = static_cast<int>(threadIdx.x) % gemm_tile;
  int const y = static_cast<int>(threadIdx.x) / gemm_tile;
  auto const row = blockIdx.x / across * gemm_tile + y;
  auto const column = blockIdx.x % across * gemm_tile + x;
  W sum = 0;
  for (int64_t from = 0; from < g.k; from += gemm_tile) {
    auto const a_k = from + x;
    auto const b_k = from + y;
    a[y][x] = row < g.m && a_k < g.k ? widen(g.a[g.transpose_a ? a_k * g.m + row : row * g.k + a_k]) : W{0};
    b[y][x] = column < g.n && b_k < g.k ? widen(g.b[g.transpose_b ? column * g.k + b_k : b_k * g.n + column])
                                        : W{0};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < gemm_tile; ++i) { sum += a[y][i] * b[i][x]; }
    __syncthreads();
  }
  finish(g, row, column, sum);
}

template <element T, element Out>
void run(stream& on, kernel::gemm<T, Out> const& g) {
  if (g.m == 0 || g.n == 0) {
    return;
  }
  if (on.gemms().run(on.handle(), g)) {
    return;
  }
  auto const across = pieces_of(g.n, gemm_tile);
  start(on, gemm_kernel<T, Out>, pieces_of(g.m, gemm_tile) * across, gemm_tile * gemm_tile, 0, g, across);
}

}  // namespace superoffload::cuda::kernels
