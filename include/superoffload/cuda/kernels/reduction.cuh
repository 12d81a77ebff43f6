// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/reduction.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int column_threads = 64;

template <class T, class Out>
__global__ void column_sum_kernel(kernel::column_sum<T, Out> a) {
  auto const column = static_cast<int64_t>(blockIdx.x) * column_threads + threadIdx.x;
  if (column >= a.columns) {
    return;
  }
  wide<T> total = 0;
#pragma unroll 8
  for (int64_t row = 0; row < a.rows; ++row) { total += widen(a.x[row * a.columns + column]); }
  if (a.accumulate) {
    total = static_cast<wide<T>>(widen(a.out[column])) + total;
  }
  a.out[column] = narrow<Out>(total);
}

template <element T, element Out>
void run(stream& on, kernel::column_sum<T, Out> const& a) {
  start(on, column_sum_kernel<T, Out>, pieces_of(a.columns, column_threads), column_threads, 0, a);
}

inline constexpr int sum_threads = 512;

/// The sum over a block of value(x) for all x of an array; which thread adds what does not depend on its
/// address.
template <class T, class Value>
__device__ double sum_over_block(T const* x, int64_t count, Value value) {
  constexpr int n = lanes<T>;
  double total = 0;
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < count; i += sum_threads * n) {
    wide<T> v[n];
    load(x + i, count - i, v);
#pragma unroll
    for (int j = 0; j < n; ++j) { total += value(static_cast<double>(v[j])); }
  }
  return over_block(total, 0.0, sum_of{});
}

struct identity {
  __device__ double operator()(double x) const { return x; }
};
struct square {
  __device__ double operator()(double x) const { return x * x; }
};

template <class T>
__global__ void sum_kernel(kernel::sum<T> a) {
  auto const total = sum_over_block(a.values, a.count, identity{});
  if (threadIdx.x == 0) {
    *a.total = a.accumulate ? *a.total + total : total;
  }
}

template <element T>
void run(stream& on, kernel::sum<T> const& a) {
  start(on, sum_kernel<T>, 1, sum_threads, 0, a);
}

template <class T>
__global__ void square_sum_kernel(kernel::square_sum<T> a) {
  auto const begin = static_cast<int64_t>(blockIdx.x) * kernel::norm_grid;
  auto const count = a.count - begin < kernel::norm_grid ? a.count - begin : kernel::norm_grid;
  auto const total = sum_over_block(a.x + begin, count, square{});
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = total;
  }
}

template <element T>
void run(stream& on, kernel::square_sum<T> const& a) {
  start(on, square_sum_kernel<T>, kernel::norm_cells(a.count), sum_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
