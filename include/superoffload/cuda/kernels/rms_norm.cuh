// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/rms_norm.hpp>

namespace superoffload::cuda::kernels {

/// Few, so that many rows are under way at once.
inline constexpr int norm_row_threads = 128;

/// Rows of whole words that fit into the registers of a block are read once: V words a thread, `row_threads`
/// threads a row, a power of 2 up to a warp, or all of the block.
template <class T, int V>
__global__ void __launch_bounds__(1024)
    rms_norm_forward_kernel(kernel::rms_norm_forward<T> a, int row_threads) {
  using W = wide<T>;
  constexpr int n = word<T>;
  int const lane = static_cast<int>(threadIdx.x) % row_threads;
  auto const row = static_cast<int64_t>(blockIdx.x) * (static_cast<int>(blockDim.x) / row_threads) +
                   static_cast<int>(threadIdx.x) / row_threads;
  auto const columns = row < a.rows ? static_cast<int>(a.columns) : 0;
  auto const* const from = a.x + row * a.columns;
  row_word<T> x[V];
  row_word<T> weight[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    int const i = (lane + v * row_threads) * n;
    x[v] = i < columns ? row_word<T>::load(from + i) : row_word<T>::zero();
  }
#pragma unroll
  for (int v = 0; v < V; ++v) {
    int const i = (lane + v * row_threads) * n;
    weight[v] = i < columns ? row_word<T>::load(a.weight + i) : row_word<T>::zero();
  }
  W squares = 0;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    W value[n];
    x[v].widen(value);
#pragma unroll
    for (int j = 0; j < n; ++j) { squares += value[j] * value[j]; }
    x[v].keep_narrow();
  }
  squares = over_row(squares, row_threads);
  auto const factor =
      W{1} / sqrt(squares / static_cast<W>(columns < 1 ? 1 : columns) + static_cast<W>(a.epsilon));
  if (lane == 0 && row < a.rows) {
    a.inverse_rms[row] = factor;
  }
#pragma unroll
  for (int v = 0; v < V; ++v) {
    int const i = (lane + v * row_threads) * n;
    if (i < columns) {
      W y[n], by[n];
      x[v].widen(y);
      weight[v].widen(by);
#pragma unroll
      for (int j = 0; j < n; ++j) { y[j] = y[j] * factor * by[j]; }
      row_word<T>::narrow(y).store(a.y + row * a.columns + i);
    }
  }
}

/// Any rows: a block is one, and what is read a second time comes from the caches.
template <class T>
__global__ void rms_norm_forward_any_kernel(kernel::rms_norm_forward<T> a) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x;
  auto const* const x = a.x + row * a.columns;
  auto const step = static_cast<int64_t>(blockDim.x) * n;
  W squares = 0;
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns; i += step) {
    W v[n];
    load(x + i, a.columns - i, v);
#pragma unroll
    for (int j = 0; j < n; ++j) { squares += v[j] * v[j]; }
  }
  squares = over_block(squares, W{0}, sum_of{});
  auto const mean = a.columns == 0 ? W{0} : squares / static_cast<W>(a.columns);
  auto const factor = W{1} / sqrt(mean + static_cast<W>(a.epsilon));
  if (threadIdx.x == 0) {
    a.inverse_rms[row] = factor;
  }
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns; i += step) {
    W v[n], weight[n];
    load(x + i, a.columns - i, v);
    load(a.weight + i, a.columns - i, weight);
#pragma unroll
    for (int j = 0; j < n; ++j) { v[j] = v[j] * factor * weight[j]; }
    store(a.y + row * a.columns + i, a.columns - i, v);
  }
}

template <element T>
void run(stream& on, kernel::rms_norm_forward<T> const& a) {
  auto const words = a.columns / word<T>;
  if (a.columns > 0 && words <= int64_t{4} * 1024 && whole_words(a.columns, a.x, a.weight, a.y)) {
    auto const row_threads = row_threads_for(words <= 32 ? words : pieces_of(words, 4));
    auto const threads = row_threads > 32 ? row_threads : norm_row_threads;  // one row, or several
    start(on, words <= 32 ? rms_norm_forward_kernel<T, 1> : rms_norm_forward_kernel<T, 4>,
          pieces_of(a.rows, threads / row_threads), threads, 0, a, row_threads);
  } else {
    start(on, rms_norm_forward_any_kernel<T>, a.rows,
          threads_for(pieces_of(a.columns, lanes<T>), norm_row_threads), 0, a);
  }
}

/// A thread's word of one row of all operands.
template <class T>
struct norm_backward_row {
  row_word<T> d_y = row_word<T>::zero(), x = row_word<T>::zero(), before = row_word<T>::zero();
  wide<T> factor = 0;

  /// Zeros unless `wanted`.
  __device__ __forceinline__ static norm_backward_row fetch(kernel::rms_norm_backward<T> const& a,
                                                            int64_t row, int i, bool wanted) {
    norm_backward_row operands;
    if (wanted) {
      auto const at = row * a.columns + i;
      operands.d_y = row_word<T>::load(a.d_y + at);
      operands.x = row_word<T>::load(a.x + at);
      if (a.accumulate) {
        operands.before = row_word<T>::load(a.d_x + at);
      }
      operands.factor = a.inverse_rms[row];
    }
    return operands;
  }
};

/// A block is a block of rows, a thread one word of the columns: each matrix is read once, the next row while
/// this one is worked on, and the weight's sums stay in registers.
template <class T>
__global__ void __launch_bounds__(1024) rms_norm_backward_kernel(kernel::rms_norm_backward<T> a) {
  using W = wide<T>;
  constexpr int n = word<T>;
  __shared__ W of_warps[2][32];
  int const i = static_cast<int>(threadIdx.x) * n;
  bool const here = i < a.columns;
  auto const block_rows = kernel::rms_norm_block_rows(a.rows);
  auto row = blockIdx.x * block_rows;
  auto const end = row + block_rows < a.rows ? row + block_rows : a.rows;
  auto weight = here ? row_word<T>::load(a.weight + i) : row_word<T>::zero();
  auto const inverse_columns = W{1} / static_cast<W>(a.columns);
  W sums[n]{};

  auto next = norm_backward_row<T>::fetch(a, row, i, here && row < end);
  for (int parity = 0; row < end; ++row, parity ^= 1) {
    auto now = next;
    next = norm_backward_row<T>::fetch(a, row + 1, i, here && row + 1 < end);
    W d[n], normal[n], by[n];
    now.d_y.widen(d);
    now.x.widen(normal);
    weight.widen(by);
    W products = 0;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      auto const term = d[j] * (normal[j] * now.factor);
      sums[j] += term;
      products += term * by[j];
    }
    now.d_y.keep_narrow();
    now.x.keep_narrow();
    weight.keep_narrow();
    products = over_warp(products, sum_of{});
    if (threadIdx.x % 32 == 0) {
      of_warps[parity][threadIdx.x / 32] = products;
    }
    __syncthreads();
    auto const lane = threadIdx.x % 32;
    products = over_warp(lane < blockDim.x / 32 ? of_warps[parity][lane] : W{0}, sum_of{});
    auto const mean = products * inverse_columns;
    if (here) {
      W before[n];
      now.d_y.widen(d);
      now.x.widen(normal);
      weight.widen(by);
      now.before.widen(before);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        before[j] += now.factor * (d[j] * by[j] - normal[j] * now.factor * mean);
      }
      row_word<T>::narrow(before).store(a.d_x + row * a.columns + i);
    }
  }
  if (a.partial != nullptr && here) {
    store(a.partial + blockIdx.x * a.columns + i, n, sums);
  }
}

inline constexpr int norm_column_threads = 32;

/// For any rows: a block sums a vector of columns for each of its threads over one block of rows.
template <class T>
__global__ void rms_norm_partial_any_kernel(kernel::rms_norm_backward<T> a, int64_t across) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const block = blockIdx.x / across;
  auto const i = (blockIdx.x % across * norm_column_threads + threadIdx.x) * n;
  auto const left = a.columns - i;
  if (left <= 0) {
    return;
  }
  auto const block_rows = kernel::rms_norm_block_rows(a.rows);
  auto const begin = block * block_rows;
  auto const end = begin + block_rows < a.rows ? begin + block_rows : a.rows;
  W sums[n]{};
  for (auto row = begin; row < end; ++row) {
    W d[n], x[n];
    load(a.d_y + row * a.columns + i, left, d);
    load(a.x + row * a.columns + i, left, x);
    auto const factor = a.inverse_rms[row];
#pragma unroll
    for (int j = 0; j < n; ++j) { sums[j] += d[j] * (x[j] * factor); }
  }
  store(a.partial + block * a.columns + i, left, sums);
}

template <class T>
__global__ void rms_norm_backward_any_kernel(kernel::rms_norm_backward<T> a) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x;
  auto const* const d_y = a.d_y + row * a.columns;
  auto const* const x = a.x + row * a.columns;
  auto* const d_x = a.d_x + row * a.columns;
  auto const factor = a.inverse_rms[row];
  auto const step = static_cast<int64_t>(blockDim.x) * n;
  W products = 0;
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns; i += step) {
    W d[n], v[n], weight[n];
    load(d_y + i, a.columns - i, d);
    load(x + i, a.columns - i, v);
    load(a.weight + i, a.columns - i, weight);
#pragma unroll
    for (int j = 0; j < n; ++j) { products += d[j] * weight[j] * (v[j] * factor); }
  }
  auto const mean = over_block(products, W{0}, sum_of{}) / static_cast<W>(a.columns == 0 ? 1 : a.columns);
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns; i += step) {
    W d[n], v[n], weight[n], before[n]{};
    load(d_y + i, a.columns - i, d);
    load(x + i, a.columns - i, v);
    load(a.weight + i, a.columns - i, weight);
    if (a.accumulate) {
      load(d_x + i, a.columns - i, before);
    }
#pragma unroll
    for (int j = 0; j < n; ++j) { v[j] = before[j] + factor * (d[j] * weight[j] - v[j] * factor * mean); }
    store(d_x + i, a.columns - i, v);
  }
}

template <element T>
void run(stream& on, kernel::rms_norm_backward<T> const& a) {
  auto const blocks = kernel::rms_norm_blocks(a.rows);
  auto const words = a.columns / word<T>;
  if (a.columns > 0 && words <= 1024 && whole_words(a.columns, a.d_y, a.x, a.weight, a.d_x, a.partial)) {
    start(on, rms_norm_backward_kernel<T>, blocks, threads_for(words, 1024), 0, a);
    return;
  }
  if (a.partial != nullptr) {  // first: d_x may overwrite d_y
    auto const across = pieces_of(a.columns, norm_column_threads * lanes<T>);
    start(on, rms_norm_partial_any_kernel<T>, blocks * across, norm_column_threads, 0, a, across);
  }
  start(on, rms_norm_backward_any_kernel<T>, a.rows,
        threads_for(pieces_of(a.columns, lanes<T>), norm_row_threads), 0, a);
}

}  // namespace superoffload::cuda::kernels
