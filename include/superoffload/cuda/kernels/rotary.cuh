// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/rotary.hpp>

namespace superoffload::cuda::kernels {

/// A block is a row.
template <class T>
__global__ void rotary_kernel(kernel::rotary<T> a) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x;
  int const half = a.head_dim / 2;
  int const pieces = (half + n - 1) / n;
  auto const* const cosines = a.cosines + static_cast<int64_t>(a.positions[row]) * half;
  auto const* const sines = a.sines + static_cast<int64_t>(a.positions[row]) * half;
  for (int item = static_cast<int>(threadIdx.x); item < a.heads * pieces;
       item += static_cast<int>(blockDim.x)) {
    int const i = item % pieces * n;
    auto* const low = a.x + row * a.stride + static_cast<int64_t>(item / pieces) * a.head_dim + i;
    auto* const high = low + half;
    W x[n], y[n], cosine[n], sine[n];
    load(low, half - i, x);
    load(high, half - i, y);
    load(cosines + i, half - i, cosine);
    load(sines + i, half - i, sine);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      auto const s = a.inverse ? -sine[j] : sine[j];
      auto const turned = x[j] * cosine[j] - y[j] * s;
      y[j] = y[j] * cosine[j] + x[j] * s;
      x[j] = turned;
    }
    store(low, half - i, x);
    store(high, half - i, y);
  }
}

template <element T>
void run(stream& on, kernel::rotary<T> const& a) {
  auto const items = a.heads * pieces_of(a.head_dim / 2, lanes<T>);
  if (items > 0) {
    start(on, rotary_kernel<T>, a.rows, threads_for(items), 0, a);
  }
}

}  // namespace superoffload::cuda::kernels
