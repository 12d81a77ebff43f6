// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/generic_attention.cuh>

namespace superoffload::cuda::kernels {

/// A block sums one head over its rows: each warp some of them in order, then the warps' sums in order.
template <class T>
__global__ void __launch_bounds__(attention_threads)
    attention_sinks_kernel(kernel::attention_sinks_backward<T> a) {
  using W = wide<T>;
  constexpr int own = kernel::attention_sinks_block_rows / attention_warps;
  static_assert(own * attention_warps == kernel::attention_sinks_block_rows);
  __shared__ W of_warps[attention_warps];
  auto const& s = a.shape;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const warp = static_cast<int>(threadIdx.x) / 32;
  int64_t const block = blockIdx.x / s.heads;
  int64_t const head = blockIdx.x % s.heads;
  auto const sink = widen(a.sinks[head]);
  auto const together = a.rows_together == 0 ? s.rows : a.rows_together;
  auto const first = block * kernel::attention_sinks_block_rows + warp * own;
  W sum = 0;
  for (auto row = first; row < first + own && row < s.rows; ++row) {
    auto const at = (row * s.heads + head) * s.head_dim;
    W products = 0;
    for (int d = lane; d < s.head_dim; d += 32) { products += widen(a.out[at + d]) * widen(a.d_out[at + d]); }
    products = over_warp(products, sum_of{});
    auto const log_sum_exp = a.log_sum_exp[(row / together * s.heads + head) * together + row % together];
    sum += exponential(sink - log_sum_exp) * products;
  }
  if (lane == 0) {
    of_warps[warp] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    W total = 0;
    for (auto const part : of_warps) { total += part; }
    a.partial[block * s.heads + head] = -total;
  }
}

template <element T>
void run(stream& on, kernel::attention_sinks_backward<T> const& a) {
  start(on, attention_sinks_kernel<T>, kernel::attention_sinks_blocks(a.shape.rows) * a.shape.heads,
        attention_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
