// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/rotary.hpp>

#include <algorithm>

namespace superoffload::cuda::kernels {

/// Heads that a thread has under way at once.
inline constexpr int rotary_heads = 3;
inline constexpr int rotary_threads = 256;
inline constexpr int rotary_row_threads = 64;

/// Heads of whole words: a thread keeps cosines and sines of one word of a row and turns it in every
/// `groups`-th head. `words` threads make a head, `groups` of them a row, and `rows` rows a block.
template <class T>
__global__ void __launch_bounds__(rotary_threads)
    rotary_kernel(kernel::rotary<T> a, int words, int groups, int rows) {
  using W = wide<T>;
  constexpr int n = word<T>;
  int const half = words * n;
  int const within = static_cast<int>(threadIdx.x) / words;
  int const i = static_cast<int>(threadIdx.x) % words * n;
  auto const row = static_cast<int64_t>(blockIdx.x) * rows + within / groups;
  if (row >= a.rows || within >= groups * rows) {
    return;
  }
  auto* const x = a.x + row * a.stride + i;
  auto const angles = static_cast<int64_t>(a.positions[row]) * half + i;
  W cosine[n], sine[n];
  load_aligned(a.cosines + angles, cosine);
  load_aligned(a.sines + angles, sine);
  if (a.inverse) {
#pragma unroll
    for (int j = 0; j < n; ++j) { sine[j] = -sine[j]; }
  }
  for (int head = within % groups; head < a.heads; head += rotary_heads * groups) {
    row_word<T> low[rotary_heads], high[rotary_heads];
#pragma unroll
    for (int h = 0; h < rotary_heads; ++h) {
      if (head + h * groups < a.heads) {
        auto const* const from = x + (head + h * groups) * a.head_dim;
        low[h] = row_word<T>::load(from);
        high[h] = row_word<T>::load(from + half);
      }
    }
#pragma unroll
    for (int h = 0; h < rotary_heads; ++h) {
      if (head + h * groups < a.heads) {
        W first[n], second[n];
        low[h].widen(first);
        high[h].widen(second);
#pragma unroll
        for (int j = 0; j < n; ++j) {
          auto const turned = first[j] * cosine[j] - second[j] * sine[j];
          second[j] = second[j] * cosine[j] + first[j] * sine[j];
          first[j] = turned;
        }
        auto* const to = x + (head + h * groups) * a.head_dim;
        row_word<T>::narrow(first).store(to);
        row_word<T>::narrow(second).store(to + half);
      }
    }
  }
}

/// Any heads: a block is a row.
template <class T>
__global__ void rotary_any_kernel(kernel::rotary<T> a) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x;
  int const half = a.turned / 2;
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
  auto const half = a.turned / 2;
  auto const words = half / word<T>;
  if (a.heads > 0 && words >= 1 && words <= rotary_threads && a.stride % word<T> == 0 &&
      a.head_dim % word<T> == 0 && whole_words(half, a.x, a.cosines, a.sines)) {
    auto const groups = std::clamp(rotary_row_threads / words, 1, a.heads);
    auto const rows = rotary_threads / (words * groups);
    start(on, rotary_kernel<T>, pieces_of(a.rows, rows), rotary_threads, 0, a, words, groups, rows);
    return;
  }
  auto const items = a.heads * pieces_of(half, lanes<T>);
  if (items > 0) {
    start(on, rotary_any_kernel<T>, a.rows, threads_for(items), 0, a);
  }
}

}  // namespace superoffload::cuda::kernels
