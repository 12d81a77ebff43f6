// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/swiglu.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int swiglu_threads = 256;

template <class T>
__device__ __forceinline__ wide<T> sigmoid(wide<T> x) {
  return quotient_for<T>(wide<T>{1}, wide<T>{1} + exp_for<T>(-x));
}

/// A row is cut into `across` blocks.
template <class T>
__global__ void swiglu_forward_kernel(kernel::swiglu_forward<T> a, int64_t across) {
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x / across;
  auto const i = (blockIdx.x % across * swiglu_threads + threadIdx.x) * n;
  auto const left = a.columns - i;
  if (left <= 0) {
    return;
  }
  auto const* const gate = a.gate_up + 2 * row * a.columns + i;
  wide<T> g[n], u[n];
  load(gate, left, g);
  load(gate + a.columns, left, u);
#pragma unroll
  for (int j = 0; j < n; ++j) { g[j] = g[j] * sigmoid<T>(g[j]) * u[j]; }
  store(a.out + row * a.columns + i, left, g);
}

template <class T>
__global__ void swiglu_backward_kernel(kernel::swiglu_backward<T> a, int64_t across) {
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x / across;
  auto const i = (blockIdx.x % across * swiglu_threads + threadIdx.x) * n;
  auto const left = a.columns - i;
  if (left <= 0) {
    return;
  }
  auto const* const gate = a.gate_up + 2 * row * a.columns + i;
  wide<T> d[n], g[n], u[n];
  load(a.d_out + row * a.columns + i, left, d);
  load(gate, left, g);
  load(gate + a.columns, left, u);
#pragma unroll
  for (int j = 0; j < n; ++j) {
    auto const s = sigmoid<T>(g[j]);
    auto const d_up = d[j] * g[j] * s;
    auto const d_gate = d[j] * u[j] * s * (wide<T>{1} + g[j] * (wide<T>{1} - s));
    d[j] = g[j] * s * u[j];
    g[j] = d_gate;
    u[j] = d_up;
  }
  auto* const d_gate = a.d_gate_up + 2 * row * a.columns + i;
  store(d_gate, left, g);
  store(d_gate + a.columns, left, u);
  store(a.out + row * a.columns + i, left, d);
}

template <element T>
void run(stream& on, kernel::swiglu_forward<T> const& a) {
  auto const across = pieces_of(a.columns, swiglu_threads * lanes<T>);
  start(on, swiglu_forward_kernel<T>, a.rows * across, swiglu_threads, 0, a, across);
}
template <element T>
void run(stream& on, kernel::swiglu_backward<T> const& a) {
  auto const across = pieces_of(a.columns, swiglu_threads * lanes<T>);
  start(on, swiglu_backward_kernel<T>, a.rows * across, swiglu_threads, 0, a, across);
}

}  // namespace superoffload::cuda::kernels
