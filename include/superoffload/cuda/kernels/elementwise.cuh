// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/elementwise.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int flat_threads = 256;

/// The first element of this thread in a flat array.
template <int N>
__device__ int64_t flat_index() {
  return (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
}
template <int N>
constexpr int64_t flat_blocks(int64_t count) {
  return pieces_of(count, int64_t{N} * flat_threads);
}

template <class T>
__global__ void add_kernel(kernel::add<T> a) {
  constexpr int n = lanes<T>;
  auto const i = flat_index<n>();
  auto const left = a.count - i;
  if (left <= 0) {
    return;
  }
  wide<T> x[n], y[n];
  load(a.a + i, left, x);
  load(a.b + i, left, y);
#pragma unroll
  for (int j = 0; j < n; ++j) { x[j] += y[j]; }
  store(a.out + i, left, x);
}

template <element T>
void run(stream& on, kernel::add<T> const& a) {
  start(on, add_kernel<T>, flat_blocks<lanes<T>>(a.count), flat_threads, 0, a);
}

template <class From, class To>
__global__ void convert_kernel(kernel::convert<From, To> a) {
  constexpr int n = lanes<From, To>;
  auto const i = flat_index<n>();
  auto const left = a.count - i;
  if (left <= 0) {
    return;
  }
  wide<From> x[n];
  load(a.from + i, left, x);
  wide<To> y[n]{};
  if (a.accumulate) {
    load(a.to + i, left, y);
  }
  if constexpr (std::is_same_v<wide<From>, wide<To>>) {
#pragma unroll
    for (int j = 0; j < n; ++j) { y[j] = a.accumulate ? y[j] + x[j] : x[j]; }
    store(a.to + i, left, y);
  } else {  // one of them is double
    alignas(16) To z[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      double const from = x[j];
      z[j] = narrow_double<To>(a.accumulate ? static_cast<double>(y[j]) + from : from);
    }
    store_exact(a.to + i, left, z);
  }
}

template <element From, element To>
void run(stream& on, kernel::convert<From, To> const& a) {
  start(on, convert_kernel<From, To>, flat_blocks<lanes<From, To>>(a.count), flat_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
