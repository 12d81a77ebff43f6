// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/embedding.hpp>

namespace superoffload::cuda::kernels {

/// Few, so that each has several words of its row under way.
inline constexpr int embedding_threads = 128;

/// A block is a row.
template <class T>
__global__ void embedding_forward_kernel(kernel::embedding_forward<T> a, bool whole) {
  int64_t const row = blockIdx.x;
  auto const* const from = a.table + static_cast<int64_t>(a.ids[row]) * a.columns;
  if (whole) {
    constexpr int n = word<T>;
    auto* const to = a.out + row * a.columns;
#pragma unroll 4
    for (auto i = static_cast<int>(threadIdx.x) * n; i < a.columns; i += embedding_threads * n) {
      row_word<T>::load(from + i).store(to + i);
    }
    return;
  }
  constexpr int n = lanes<T>;
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns;
       i += static_cast<int64_t>(blockDim.x) * n) {
    wide<T> x[n];
    load(from + i, a.columns - i, x);
    store(a.out + row * a.columns + i, a.columns - i, x);  // exact: nothing is rounded
  }
}

template <element T>
void run(stream& on, kernel::embedding_forward<T> const& a) {
  start(on, embedding_forward_kernel<T>, a.rows, embedding_threads, 0, a,
        whole_words(a.columns, a.table, a.out));
}

inline constexpr int segment_threads = 64;

/// A block sums some columns of one segment, row after row.
template <class T, class G>
__global__ void embedding_backward_kernel(kernel::embedding_backward<T, G> a, int64_t across) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const segment = blockIdx.x / across;
  auto const i = (blockIdx.x % across * segment_threads + threadIdx.x) * n;
  auto const left = a.columns - i;
  if (left <= 0 || a.segment_ids[segment] == a.ignored) {
    return;
  }
  W sums[n]{};
  auto const end = a.starts[segment + 1];
  for (auto entry = a.starts[segment]; entry < end; ++entry) {
    W d[n];
    load(a.d_out + static_cast<int64_t>(a.order[entry]) * a.columns + i, left, d);
#pragma unroll
    for (int j = 0; j < n; ++j) { sums[j] += d[j]; }
  }
  auto* const gradient = a.gradient + static_cast<int64_t>(a.segment_ids[segment]) * a.columns + i;
  wide<G> g[n];
  load(gradient, left, g);
#pragma unroll
  for (int j = 0; j < n; ++j) { g[j] += sums[j]; }
  store(gradient, left, g);
}

template <element T, element G>
void run(stream& on, kernel::embedding_backward<T, G> const& a) {
  auto const across = pieces_of(a.columns, segment_threads * lanes<T>);
  start(on, embedding_backward_kernel<T, G>, a.segments * across, segment_threads, 0, a, across);
}

}  // namespace superoffload::cuda::kernels
