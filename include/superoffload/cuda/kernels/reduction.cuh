// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/reduction.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int column_words = 4;
inline constexpr int column_threads = 1024;

/// sums[j] += column i + j of every row of this thread's group.
template <class T, class Out>
__device__ __forceinline__ void sum_rows(kernel::column_sum<T, Out> const& a, int64_t i, bool whole,
                                         wide<T> (&sums)[word<T>]) {
  using W = wide<T>;
  constexpr int n = word<T>;
  auto const left = a.columns - i;
  int const group = static_cast<int>(threadIdx.x) / column_words;
  int const groups = static_cast<int>(blockDim.x) / column_words;
  if (whole && left > 0) {
    constexpr int ahead = 8;
    auto row = static_cast<int64_t>(group);
    for (; row + (ahead - 1) * groups < a.rows; row += ahead * groups) {
      row_word<T> x[ahead];
#pragma unroll
      for (int r = 0; r < ahead; ++r) { x[r] = row_word<T>::load(a.x + (row + r * groups) * a.columns + i); }
#pragma unroll
      for (int r = 0; r < ahead; ++r) {
        W value[n];
        x[r].widen(value);
#pragma unroll
        for (int j = 0; j < n; ++j) { sums[j] += value[j]; }
      }
    }
    for (; row < a.rows; row += groups) {
      W value[n];
      row_word<T>::load(a.x + row * a.columns + i).widen(value);
#pragma unroll
      for (int j = 0; j < n; ++j) { sums[j] += value[j]; }
    }
  } else if (left > 0) {
    for (auto row = static_cast<int64_t>(group); row < a.rows; row += groups) {
      W x[n];
      load(a.x + row * a.columns + i, left, x);
#pragma unroll
      for (int j = 0; j < n; ++j) { sums[j] += x[j]; }
    }
  }
}

/// A block sums a strip of the columns, `column_words` words wide: thread groups take rows in turn, then
/// their sums are added, in an order that the sizes alone decide.
template <class T, class Out>
__device__ __forceinline__ void sum_columns(kernel::column_sum<T, Out> const& a, int64_t strip, bool whole) {
  using W = wide<T>;
  constexpr int n = word<T>;
  constexpr int groups_in_warp = 32 / column_words;
  __shared__ W of_warps[column_threads / 32][column_words * n];
  int const word_of_strip = static_cast<int>(threadIdx.x) % column_words;
  auto const i = (strip * column_words + word_of_strip) * n;
  W sums[n]{};
  sum_rows(a, i, whole, sums);
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int distance = groups_in_warp / 2; distance > 0; distance /= 2) {
      sums[j] += __shfl_xor_sync(0xFFFFFFFFU, sums[j], distance * column_words);
    }
  }
  if (threadIdx.x % 32 < column_words) {
#pragma unroll
    for (int j = 0; j < n; ++j) { of_warps[threadIdx.x / 32][word_of_strip * n + j] = sums[j]; }
  }
  __syncthreads();
  auto const column = strip * column_words * n + threadIdx.x;
  if (threadIdx.x >= column_words * n || column >= a.columns) {
    return;
  }
  W total = 0;
  for (int warp = 0; warp < static_cast<int>(blockDim.x) / 32; ++warp) {
    total += of_warps[warp][threadIdx.x];
  }
  if (a.accumulate) {
    total = static_cast<W>(widen(a.out[column])) + total;
  }
  a.out[column] = narrow<Out>(total);
}

template <class T, class Out>
__global__ void __launch_bounds__(column_threads)
    column_sum_kernel(kernel::column_sum<T, Out> a, bool whole) {
  sum_columns(a, blockIdx.x, whole);
}

template <element T, element Out>
void run(stream& on, kernel::column_sum<T, Out> const& a) {
  start(on, column_sum_kernel<T, Out>, pieces_of(a.columns, column_words * word<T>),
        threads_for(a.rows * column_words, column_threads), 0, a, whole_words(a.columns, a.x));
}

inline constexpr int sum_threads = 512;

/// The sum over a block of value(x) for all x of an array. A thread takes N elements in a row, whole words of
/// them: which thread adds what depends neither on the array's address nor, with the same N, on its type.
template <int N, class T, class Value>
__device__ double sum_over_block(T const* x, int64_t count, Value value) {
  constexpr int words_at_once = N / word<T>;
  constexpr int ahead = 4;
  constexpr int64_t step = sum_threads * N;
  double total = 0;
  auto i = static_cast<int64_t>(threadIdx.x) * N;
  if (aligned<N>(x)) {
    for (; i + (ahead - 1) * step + N <= count; i += ahead * step) {
      row_word<T> words[ahead][words_at_once];
#pragma unroll
      for (int a = 0; a < ahead; ++a) {
#pragma unroll
        for (int w = 0; w < words_at_once; ++w) {
          words[a][w] = row_word<T>::load(x + i + a * step + w * word<T>);
        }
      }
#pragma unroll
      for (int a = 0; a < ahead; ++a) {
#pragma unroll
        for (int w = 0; w < words_at_once; ++w) {
          wide<T> v[word<T>];
          words[a][w].widen(v);
#pragma unroll
          for (int j = 0; j < word<T>; ++j) { total += value(static_cast<double>(v[j])); }
        }
      }
    }
  }
  for (; i < count; i += step) {
    wide<T> v[N];
    load(x + i, count - i, v);
#pragma unroll
    for (int j = 0; j < N; ++j) { total += value(static_cast<double>(v[j])); }
  }
  return over_block(total, 0.0, sum_of{});
}

struct identity {
  __device__ double operator()(double x) const { return x; }
};
template <class T>
struct square_of {
  __device__ double operator()(wide<T> x) const {
    auto const value = static_cast<double>(widen(narrow<T>(x)));
    return value * value;
  }
};

template <class T>
__global__ void sum_kernel(kernel::sum<T> a) {
  auto const total = sum_over_block<word<T>>(a.values, a.count, identity{});
  if (threadIdx.x == 0) {
    *a.total = a.accumulate ? *a.total + total : total;
  }
}

template <element T>
void run(stream& on, kernel::sum<T> const& a) {
  start(on, sum_kernel<T>, 1, sum_threads, 0, a);
}

template <class T, class From>
__global__ void square_sum_kernel(kernel::square_sum<T, From> a) {
  auto const begin = static_cast<int64_t>(blockIdx.x) * kernel::norm_grid;
  auto const count = a.count - begin < kernel::norm_grid ? a.count - begin : kernel::norm_grid;
  auto const total = sum_over_block<word<T>>(a.x + begin, count, square_of<T>{});
  if (threadIdx.x == 0) {
    a.partial[blockIdx.x] = total;
  }
}

template <element T, element From>
void run(stream& on, kernel::square_sum<T, From> const& a) {
  start(on, square_sum_kernel<T, From>, kernel::norm_cells(a.count), sum_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
