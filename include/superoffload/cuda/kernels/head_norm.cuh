// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/head_norm.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int head_norm_threads = 256;

/// A block is a row, a warp takes every eighth head of it.
template <class T>
__global__ void __launch_bounds__(head_norm_threads)
    head_norm_forward_kernel(kernel::head_norm_forward<T> a) {
  using W = wide<T>;
  auto const& s = a.shape;
  int64_t const row = blockIdx.x;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const half = s.head_dim / 2;
  int const heads = s.heads();
  auto const* const cosines = a.cosines + static_cast<int64_t>(a.positions[row]) * half;
  auto const* const sines = a.sines + static_cast<int64_t>(a.positions[row]) * half;
  for (int head = static_cast<int>(threadIdx.x) / 32; head < heads; head += head_norm_threads / 32) {
    auto const at = row * s.stride + static_cast<int64_t>(head) * s.head_dim;
    auto const* const x = a.x + at;
    auto const* const weight = a.weight + (head < s.queries ? 0 : s.head_dim);
    W squares = 0;
    for (int i = lane; i < s.head_dim; i += 32) {
      auto const value = widen(x[i]);
      squares += value * value;
    }
    squares = over_warp(squares, sum_of{});
    auto const factor = W{1} / sqrt(squares / static_cast<W>(s.head_dim) + static_cast<W>(a.epsilon));
    if (lane == 0) {
      a.inverse_rms[row * heads + head] = factor;
    }
    for (int i = lane; i < half; i += 32) {
      auto const low = widen(x[i]) * factor * widen(weight[i]);
      auto const high = widen(x[half + i]) * factor * widen(weight[half + i]);
      a.y[at + i] = narrow<T>(low * cosines[i] - high * sines[i]);
      a.y[at + half + i] = narrow<T>(high * cosines[i] + low * sines[i]);
    }
  }
  constexpr int n = lanes<T>;
  for (auto i = static_cast<int64_t>(heads) * s.head_dim + static_cast<int64_t>(threadIdx.x) * n;
       i < s.stride; i += static_cast<int64_t>(head_norm_threads) * n) {
    W value[n];
    load(a.x + row * s.stride + i, s.stride - i, value);
    store(a.y + row * s.stride + i, s.stride - i, value);  // exact: nothing is rounded
  }
}

template <element T>
void run(stream& on, kernel::head_norm_forward<T> const& a) {
  start(on, head_norm_forward_kernel<T>, a.shape.rows, head_norm_threads, 0, a);
}

inline constexpr int head_norm_backward_threads = 512;

/// Adds up a block's `mine` in `sums`, warp after warp, so the order of the sum is fixed, and writes the
/// result to `partial`. A lane has P pairs of queries and of keys.
template <class W, int P>
__device__ __forceinline__ void write_weight_sums(W const (&mine)[2][P][2], W* sums, int head_dim,
                                                  W* partial) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const warp = static_cast<int>(threadIdx.x) / 32;
  int const half = head_dim / 2;
  for (int turn = 0; turn < head_norm_backward_threads / 32; ++turn) {
    if (warp == turn) {
#pragma unroll
      for (int kind = 0; kind < 2; ++kind) {
#pragma unroll
        for (int p = 0; p < P; ++p) {
          int const i = lane + 32 * p;
          if (i < half) {
            auto* const low = sums + kind * head_dim + i;
            low[0] = (turn == 0 ? W{0} : low[0]) + mine[kind][p][0];
            low[half] = (turn == 0 ? W{0} : low[half]) + mine[kind][p][1];
          }
        }
      }
    }
    __syncthreads();
  }
  for (int i = static_cast<int>(threadIdx.x); i < 2 * head_dim; i += head_norm_backward_threads) {
    partial[static_cast<int64_t>(blockIdx.x) * 2 * head_dim + i] = sums[i];
  }
}

/// A block is a block of rows; a warp takes every sixteenth head of them. A lane has the pairs lane, lane +
/// 32, ... of a head, P of them at most, and sums the weight's gradient for them.
template <class T, int P>
__global__ void __launch_bounds__(head_norm_backward_threads)
    head_norm_backward_kernel(kernel::head_norm_backward<T> a) {
  using W = wide<T>;
  extern __shared__ unsigned char head_norm_memory[];
  auto* const sums = reinterpret_cast<W*>(head_norm_memory);  // [2, head_dim]
  auto const& s = a.shape;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const warp = static_cast<int>(threadIdx.x) / 32;
  constexpr int warps = head_norm_backward_threads / 32;
  int const half = s.head_dim / 2;
  int const heads = s.heads();
  auto const block_rows = kernel::rms_norm_block_rows(s.rows);
  auto const begin = blockIdx.x * block_rows;
  auto const end = begin + block_rows < s.rows ? begin + block_rows : s.rows;
  W mine[2][P][2]{};  // of queries and keys: low, high

  for (auto item = begin * heads + warp; item < end * heads; item += warps) {
    auto const row = item / heads;
    int const head = static_cast<int>(item % heads);
    bool const is_key = head >= s.queries;
    auto const at = row * s.stride + static_cast<int64_t>(head) * s.head_dim;
    auto const* const weight = a.weight + (is_key ? s.head_dim : 0);
    auto const angles = static_cast<int64_t>(a.positions[row]) * half;
    auto const factor = a.inverse_rms[item];
    W n[P][2], d[P][2];
    W products = 0;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      int const i = lane + 32 * p;
      n[p][0] = n[p][1] = d[p][0] = d[p][1] = 0;
      if (i < half) {
        auto const cosine = a.cosines[angles + i], sine = a.sines[angles + i];
        auto const d_low = widen(a.d[at + i]), d_high = widen(a.d[at + half + i]);
        n[p][0] = widen(a.x[at + i]) * factor;
        n[p][1] = widen(a.x[at + half + i]) * factor;
        auto const low = d_low * cosine + d_high * sine;
        auto const high = d_high * cosine - d_low * sine;
        auto const low_sum = low * n[p][0], high_sum = high * n[p][1];
        mine[0][p][0] += is_key ? W{0} : low_sum;
        mine[0][p][1] += is_key ? W{0} : high_sum;
        mine[1][p][0] += is_key ? low_sum : W{0};
        mine[1][p][1] += is_key ? high_sum : W{0};
        d[p][0] = low * widen(weight[i]);
        d[p][1] = high * widen(weight[half + i]);
        products += d[p][0] * n[p][0] + d[p][1] * n[p][1];
      }
    }
    auto const mean = over_warp(products, sum_of{}) / static_cast<W>(s.head_dim);
#pragma unroll
    for (int p = 0; p < P; ++p) {
      int const i = lane + 32 * p;
      if (i < half) {
        a.d[at + i] = narrow<T>(factor * (d[p][0] - n[p][0] * mean));
        a.d[at + half + i] = narrow<T>(factor * (d[p][1] - n[p][1] * mean));
      }
    }
  }
  if (a.partial != nullptr) {
    write_weight_sums(mine, sums, s.head_dim, a.partial);
  }
}

template <element T>
void run(stream& on, kernel::head_norm_backward<T> const& a) {
  auto const pairs = pieces_of(a.shape.head_dim / 2, 32);
  expect(pairs <= 4, exit_code::bad_input, "norms of heads of ", a.shape.head_dim,
         " elements, but a GPU has them up to 256");
  auto* const code = pairs <= 1   ? head_norm_backward_kernel<T, 1>
                     : pairs <= 2 ? head_norm_backward_kernel<T, 2>
                                  : head_norm_backward_kernel<T, 4>;
  start(on, code, kernel::rms_norm_blocks(a.shape.rows), head_norm_backward_threads,
        static_cast<std::size_t>(2 * a.shape.head_dim) * sizeof(wide<T>), a);
}

}  // namespace superoffload::cuda::kernels
