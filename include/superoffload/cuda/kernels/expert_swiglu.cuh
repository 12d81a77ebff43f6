// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/swiglu.cuh>
#include <superoffload/kernel/expert_swiglu.hpp>

namespace superoffload::cuda::kernels {

/// A block is a row.
constexpr int expert_swiglu_threads(int64_t columns, int lanes) {
  return threads_for(pieces_of(columns, lanes), 512);
}

/// Gates and ups of columns [i, i + N) of a row.
template <kernel::expert_gate Gate, int N, class T>
__device__ __forceinline__ void load_gates(T const* row, int64_t i, int64_t columns, wide<T> (&gate)[N],
                                           wide<T> (&up)[N]) {
  if constexpr (Gate == kernel::expert_gate::silu) {
    load(row + i, columns - i, gate);
    load(row + columns + i, columns - i, up);
  } else {
    wide<T> low[N], high[N];
    load(row + 2 * i, 2 * (columns - i), low);
    load(row + 2 * i + N, 2 * (columns - i) - N, high);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      gate[j] = 2 * j < N ? low[2 * j % N] : high[2 * j % N];
      up[j] = 2 * j < N ? low[2 * j % N + 1] : high[2 * j % N + 1];
    }
  }
}
template <kernel::expert_gate Gate, int N, class T>
__device__ __forceinline__ void store_gates(T* row, int64_t i, int64_t columns, wide<T> const (&gate)[N],
                                            wide<T> const (&up)[N]) {
  if constexpr (Gate == kernel::expert_gate::silu) {
    store(row + i, columns - i, gate);
    store(row + columns + i, columns - i, up);
  } else {
    wide<T> low[N], high[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      (2 * j < N ? low : high)[2 * j % N] = gate[j];
      (2 * j < N ? low : high)[2 * j % N + 1] = up[j];
    }
    store(row + 2 * i, 2 * (columns - i), low);
    store(row + 2 * i + N, 2 * (columns - i) - N, high);
  }
}

/// One gate and its up.
template <class T, kernel::expert_gate Gate>
struct gated {
  using W = wide<T>;
  W gate, up, sigmoid;  ///< clamped, and with what is added to up
  bool gate_passes = true, up_passes = true;

  __device__ __forceinline__ gated(W g, W u, W limit) : gate{g}, up{u} {
    if constexpr (Gate == kernel::expert_gate::clamped) {
      gate_passes = !(g > limit);
      up_passes = !(u > limit || u < -limit);
      gate = g > limit ? limit : g;
      up = (u > limit ? limit : u < -limit ? -limit : u) + W{1};
    }
    sigmoid = kernels::sigmoid<T>(slope() * gate);
  }
  __device__ static constexpr W slope() {
    return Gate == kernel::expert_gate::clamped ? static_cast<W>(kernel::clamped_gate_slope) : W{1};
  }
  __device__ __forceinline__ W value() const { return gate * sigmoid * up; }
  __device__ __forceinline__ W d_gate(W d) const {
    return gate_passes ? d * up * sigmoid * (W{1} + slope() * gate * (W{1} - sigmoid)) : W{0};
  }
  __device__ __forceinline__ W d_up(W d) const { return up_passes ? d * gate * sigmoid : W{0}; }
};

template <class T, kernel::expert_gate Gate>
__global__ void expert_swiglu_forward_kernel(kernel::expert_swiglu_forward<T> a) {
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x;
  auto const* const gate_up = a.gate_up + 2 * row * a.columns;
  auto const weight = a.weights[a.order[row]];
  auto const limit = static_cast<wide<T>>(a.limit);
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns;
       i += static_cast<int64_t>(blockDim.x) * n) {
    wide<T> g[n], u[n];
    load_gates<Gate>(gate_up, i, a.columns, g, u);
#pragma unroll
    for (int j = 0; j < n; ++j) { g[j] = gated<T, Gate>{g[j], u[j], limit}.value() * weight; }
    store(a.out + row * a.columns + i, a.columns - i, g);
  }
}

template <class T, kernel::expert_gate Gate>
__global__ void expert_swiglu_backward_kernel(kernel::expert_swiglu_backward<T> a) {
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x;
  auto const* const gate_up = a.gate_up + 2 * row * a.columns;
  auto const choice = a.order[row];
  auto const weight = a.weights[choice];
  auto const limit = static_cast<wide<T>>(a.limit);
  wide<T> products = 0;
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns;
       i += static_cast<int64_t>(blockDim.x) * n) {
    auto const left = a.columns - i;
    wide<T> d[n], g[n], u[n];
    load(a.d_out + row * a.columns + i, left, d);
    load_gates<Gate>(gate_up, i, a.columns, g, u);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      gated<T, Gate> const x{g[j], u[j], limit};
      products += d[j] * x.value();
      g[j] = x.d_gate(weight * d[j]);
      u[j] = x.d_up(weight * d[j]);
      d[j] = x.value() * weight;
    }
    store_gates<Gate>(a.d_gate_up + 2 * row * a.columns, i, a.columns, g, u);
    store(a.out + row * a.columns + i, left, d);
  }
  products = over_block(products, wide<T>{0}, sum_of{});
  if (threadIdx.x == 0) {
    a.d_weights[choice] = products;
  }
}

template <element T>
void run(stream& on, kernel::expert_swiglu_forward<T> const& a) {
  auto* const kernel = a.gate == kernel::expert_gate::silu
                           ? expert_swiglu_forward_kernel<T, kernel::expert_gate::silu>
                           : expert_swiglu_forward_kernel<T, kernel::expert_gate::clamped>;
  start(on, kernel, a.rows, expert_swiglu_threads(a.columns, lanes<T>), 0, a);
}
template <element T>
void run(stream& on, kernel::expert_swiglu_backward<T> const& a) {
  auto* const kernel = a.gate == kernel::expert_gate::silu
                           ? expert_swiglu_backward_kernel<T, kernel::expert_gate::silu>
                           : expert_swiglu_backward_kernel<T, kernel::expert_gate::clamped>;
  start(on, kernel, a.rows, expert_swiglu_threads(a.columns, lanes<T>), 0, a);
}

}  // namespace superoffload::cuda::kernels
