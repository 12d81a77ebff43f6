// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/routing.cuh>
#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/load_balancing.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int load_threads = 256;

/// The sum of exp(logit - highest) over a row, given to each lane of its warp.
template <class T>
__device__ wide<T> softmax_total(T const* logits, int experts, wide<T> highest) {
  wide<T> total = 0;
  for (auto e = static_cast<int>(threadIdx.x) % 32; e < experts; e += 32) {
    total += exponential_of(widen(logits[e]) - highest);
  }
  return over_warp(total, sum_of{});
}

/// A block is a piece. Its warps prepare the rows, then its threads add them up, an expert each.
template <class T>
__global__ void __launch_bounds__(load_threads) expert_load_kernel(kernel::expert_load<T> a) {
  using W = wide<T>;
  __shared__ W highest[kernel::load_rows], total[kernel::load_rows];
  __shared__ bool counts[kernel::load_rows];
  auto const& s = a.shape;
  auto const begin = static_cast<int64_t>(blockIdx.x) * kernel::load_rows;
  auto const left = s.rows - begin;
  int const rows = static_cast<int>(left < kernel::load_rows ? left : kernel::load_rows);
  int const experts = static_cast<int>(s.experts);
  for (int r = static_cast<int>(threadIdx.x) / 32; r < rows; r += load_threads / 32) {
    auto const row = begin + r;
    auto const* const logits = a.logits + row * experts;
    auto const most = widen(logits[a.chosen[row * s.each]]);
    auto const sum = softmax_total(logits, experts, most);
    if (threadIdx.x % 32 == 0) {
      highest[r] = most;
      total[r] = sum;
      counts[r] = a.padding == nullptr || a.padding[row] == 0;
    }
  }
  __syncthreads();
  auto* const load = a.load + static_cast<int64_t>(blockIdx.x) * 2 * experts;
  for (int e = static_cast<int>(threadIdx.x); e < experts; e += load_threads) {
    int choices = 0;
    double probabilities = 0;
    for (int r = 0; r < rows; ++r) {
      if (!counts[r]) {
        continue;
      }
      auto const row = begin + r;
      for (int c = 0; c < s.each; ++c) { choices += a.chosen[row * s.each + c] == e ? 1 : 0; }
      probabilities +=
          static_cast<double>(exponential_of(widen(a.logits[row * experts + e]) - highest[r]) / total[r]);
    }
    load[e] = static_cast<double>(choices);
    load[experts + e] = probabilities;
  }
}

template <element T>
void run(stream& on, kernel::expert_load<T> const& a) {
  start(on, expert_load_kernel<T>, kernel::load_pieces(a.shape.rows), load_threads, 0, a);
}

/// One block, whose threads have an expert each, or several in turn.
template <class = void>
__global__ void load_balancing_loss_kernel(kernel::load_balancing_loss a) {
  double own_choices = 0, own_products = 0;
  for (auto e = static_cast<int64_t>(threadIdx.x); e < a.experts; e += blockDim.x) {
    double choices = 0, probabilities = 0;
#pragma unroll 8
    for (int64_t part = 0; part < a.parts; ++part) {
      choices += a.load[2 * part * a.experts + e];
      probabilities += a.load[(2 * part + 1) * a.experts + e];
    }
    a.slope[e] = choices;
    own_choices += choices;
    own_products += choices * probabilities;
  }
  auto const rows = over_block(own_choices, 0.0, sum_of{}) / a.each;
  auto const products = over_block(own_products, 0.0, sum_of{});
  auto const scale = rows > 0 ? a.weight * static_cast<double>(a.experts) / (rows * rows) : 0.0;
  for (auto e = static_cast<int64_t>(threadIdx.x); e < a.experts; e += blockDim.x) { a.slope[e] *= scale; }
  if (threadIdx.x == 0) {
    *a.total += a.divisor * scale * products;
  }
}

inline void run(stream& on, kernel::load_balancing_loss const& a) {
  start(on, load_balancing_loss_kernel<>, 1, threads_for(a.experts, 1024), 0, a);
}

/// A warp is a row.
template <class T>
__global__ void load_balancing_backward_kernel(kernel::load_balancing_backward<T> a) {
  using W = wide<T>;
  auto const& s = a.shape;
  auto const row = static_cast<int64_t>(blockIdx.x) * routing_rows + threadIdx.x / 32;
  if (row >= s.rows || (a.padding != nullptr && a.padding[row] != 0)) {
    return;
  }
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const experts = static_cast<int>(s.experts);
  auto const* const logits = a.logits + row * experts;
  auto* const d_logits = a.d_logits + row * experts;
  auto const highest = widen(logits[a.chosen[row * s.each]]);
  auto const total = softmax_total(logits, experts, highest);
  W mean = 0;
  for (int e = lane; e < experts; e += 32) {
    mean += exponential_of(widen(logits[e]) - highest) / total * static_cast<W>(a.slope[e]);
  }
  mean = over_warp(mean, sum_of{});
  for (int e = lane; e < experts; e += 32) {
    auto const probability = exponential_of(widen(logits[e]) - highest) / total;
    d_logits[e] = narrow<T>(widen(d_logits[e]) + probability * (static_cast<W>(a.slope[e]) - mean));
  }
}

template <element T>
void run(stream& on, kernel::load_balancing_backward<T> const& a) {
  start(on, load_balancing_backward_kernel<T>, pieces_of(a.shape.rows, routing_rows), routing_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
