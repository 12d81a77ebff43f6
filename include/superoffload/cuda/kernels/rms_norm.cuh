// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/rms_norm.hpp>

namespace superoffload::cuda::kernels {

/// Few, so that many rows are under way at once.
inline constexpr int norm_row_threads = 128;

/// A block is a row; what is read a second time comes from the caches.
template <class T>
__global__ void rms_norm_forward_kernel(kernel::rms_norm_forward<T> a) {
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
  start(on, rms_norm_forward_kernel<T>, a.rows, threads_for(pieces_of(a.columns, lanes<T>), norm_row_threads),
        0, a);
}

inline constexpr int norm_column_threads = 32;

/// A block sums a vector of columns for each of its threads over one block of rows.
template <class T>
__global__ void rms_norm_partial_kernel(kernel::rms_norm_backward<T> a, int64_t across) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const block = blockIdx.x / across;
  auto const i = (blockIdx.x % across * norm_column_threads + threadIdx.x) * n;
  auto const left = a.columns - i;
  if (left <= 0) {
    return;
  }
  auto const begin = block * kernel::rms_norm_block;
  auto const end = begin + kernel::rms_norm_block < a.rows ? begin + kernel::rms_norm_block : a.rows;
  W sums[n]{};
  W d[n], x[n];
  auto const include = [&](int64_t row) {
    auto const factor = a.inverse_rms[row];
#pragma unroll
    for (int j = 0; j < n; ++j) { sums[j] += d[j] * (x[j] * factor); }
  };
  if (left >= n && a.columns % n == 0 && aligned(a.d_y, a.x)) {
    // Nothing to decide in the loop: many loads are under way at once.
#pragma unroll 8
    for (auto row = begin; row < end; ++row) {
      load_aligned(a.d_y + row * a.columns + i, d);
      load_aligned(a.x + row * a.columns + i, x);
      include(row);
    }
  } else {
    for (auto row = begin; row < end; ++row) {
      load(a.d_y + row * a.columns + i, left, d);
      load(a.x + row * a.columns + i, left, x);
      include(row);
    }
  }
  store(a.partial + block * a.columns + i, left, sums);
}

template <class T>
__global__ void rms_norm_backward_kernel(kernel::rms_norm_backward<T> a) {
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
  if (a.partial != nullptr) {  // first: d_x may take d_y's place
    auto const across = pieces_of(a.columns, norm_column_threads * lanes<T>);
    start(on, rms_norm_partial_kernel<T>, kernel::rms_norm_blocks(a.rows) * across, norm_column_threads, 0, a,
          across);
  }
  start(on, rms_norm_backward_kernel<T>, a.rows,
        threads_for(pieces_of(a.columns, lanes<T>), norm_row_threads), 0, a);
}

}  // namespace superoffload::cuda::kernels
