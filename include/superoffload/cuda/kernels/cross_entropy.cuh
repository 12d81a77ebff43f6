// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/cross_entropy.hpp>

#include <limits>

namespace superoffload::cuda::kernels {

/// exp(x - highest) summed up, while the highest x is still being looked for.
template <class W>
struct exponential_sum {
  W highest = -std::numeric_limits<W>::infinity();
  W total = 0;

  /// What to subtract before exp: finite where nothing has been seen, so that no difference of infinities
  /// appears.
  __device__ static W shift_of(W top) { return top == -std::numeric_limits<W>::infinity() ? W{0} : top; }
};

/// A block is a row. The gradient may replace the logits: each thread writes what it alone has read.
template <class T>
__global__ void cross_entropy_kernel(kernel::cross_entropy<T> a) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x;
  auto const* const logits = a.logits + row * a.vocabulary;
  auto* const d_logits = a.d_logits == nullptr ? nullptr : a.d_logits + row * a.vocabulary;
  auto const target = a.targets[row];
  int64_t const step = static_cast<int64_t>(blockDim.x) * n;
  auto const begin = static_cast<int64_t>(threadIdx.x) * n;

  if (target < 0) {
    if (threadIdx.x == 0) {
      a.row_loss[row] = W{0};
    }
    if (d_logits != nullptr) {
      W const zero[n]{};
      for (auto i = begin; i < a.vocabulary; i += step) { store(d_logits + i, a.vocabulary - i, zero); }
    }
    return;
  }

  exponential_sum<W> mine;
  for (auto i = begin; i < a.vocabulary; i += step) {
    W x[n];
    load(logits + i, a.vocabulary - i, x, -std::numeric_limits<W>::infinity());
    auto top = mine.highest;
#pragma unroll
    for (int j = 0; j < n; ++j) { top = x[j] > top ? x[j] : top; }
    auto const shift = mine.shift_of(top);
    mine.total *= exp_for<T>(mine.highest - shift);
    mine.highest = top;
#pragma unroll
    for (int j = 0; j < n; ++j) { mine.total += exp_for<T>(x[j] - shift); }  // NaN stays in the sum
  }
  auto const target_logit = logits[target];
  auto const top = over_block(mine.highest, -std::numeric_limits<W>::infinity(), max_of{});
  auto const shift = mine.shift_of(top);
  auto const total = over_block(mine.total * exp_for<T>(mine.highest - shift), W{0}, sum_of{});
  if (threadIdx.x == 0) {
    a.row_loss[row] = log(total) + (top - target_logit);
  }
  if (d_logits == nullptr) {
    return;
  }
  auto const scale = static_cast<W>(a.scale);
  auto const factor = scale / total;
  auto const at_target = (exp(target_logit - shift) / total - W{1}) * scale;
  for (auto i = begin; i < a.vocabulary; i += step) {
    auto const left = a.vocabulary - i;
    W x[n];
    load(logits + i, left, x);
#pragma unroll
    for (int j = 0; j < n; ++j) { x[j] = i + j == target ? at_target : exp_for<T>(x[j] - shift) * factor; }
    store(d_logits + i, left, x);
  }
}

template <element T>
void run(stream& on, kernel::cross_entropy<T> const& a) {
  auto const threads = threads_for(pieces_of(a.vocabulary, lanes<T>), 1024);
  start(on, cross_entropy_kernel<T>, a.rows, threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
