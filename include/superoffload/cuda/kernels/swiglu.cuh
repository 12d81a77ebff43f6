// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/swiglu.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int swiglu_threads = 256;

/// Denormal numbers, which rounding to bfloat16 would leave few bits of, count as 0: to treat them takes more
/// instructions than all the rest.
template <class T>
__device__ __forceinline__ wide<T> sigmoid(wide<T> x) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    constexpr float log2_e = 1.44269504F;
    float power, y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-x * log2_e));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.0F + power));
    return y;
  } else {
    return wide<T>{1} / (wide<T>{1} + exp_for<T>(-x));
  }
}

/// A word of a row that is cut into `across` blocks.
template <class T>
struct swiglu_place {
  int64_t row, column;

  __device__ explicit swiglu_place(int across)
      : row{blockIdx.x / static_cast<unsigned>(across)},
        column{(int64_t{blockIdx.x % static_cast<unsigned>(across)} * swiglu_threads + threadIdx.x) *
               word<T>} {}
};

template <class T>
__global__ void swiglu_forward_kernel(kernel::swiglu_forward<T> a, int across, bool whole) {
  constexpr int n = word<T>;
  swiglu_place<T> const at{across};
  auto const left = a.columns - at.column;
  if (left <= 0) {
    return;
  }
  auto const* const gate = a.gate_up + 2 * at.row * a.columns + at.column;
  row_word<T> in[2];
  load_words<2, T>({gate, gate + a.columns}, {left, left}, whole, in);
  wide<T> g[n], u[n];
  in[0].widen(g);
  in[1].widen(u);
#pragma unroll
  for (int j = 0; j < n; ++j) { g[j] = g[j] * sigmoid<T>(g[j]) * u[j]; }
  store_words<1, T>({a.out + at.row * a.columns + at.column}, {left}, whole, {row_word<T>::narrow(g)});
}

template <class T>
__global__ void swiglu_backward_kernel(kernel::swiglu_backward<T> a, int across, bool whole) {
  constexpr int n = word<T>;
  swiglu_place<T> const at{across};
  auto const left = a.columns - at.column;
  if (left <= 0) {
    return;
  }
  auto const narrow_place = at.row * a.columns + at.column;
  auto const wide_place = narrow_place + at.row * a.columns;
  auto const* const gate = a.gate_up + wide_place;
  row_word<T> in[3];
  load_words<3, T>({a.d_out + narrow_place, gate, gate + a.columns}, {left, left, left}, whole, in);
  wide<T> d[n], g[n], u[n];
  in[0].widen(d);
  in[1].widen(g);
  in[2].widen(u);
#pragma unroll
  for (int j = 0; j < n; ++j) {
    auto const s = sigmoid<T>(g[j]);
    auto const d_up = d[j] * g[j] * s;
    auto const d_gate = d[j] * u[j] * s * (wide<T>{1} + g[j] * (wide<T>{1} - s));
    d[j] = g[j] * s * u[j];
    g[j] = d_gate;
    u[j] = d_up;
  }
  auto* const d_gate = a.d_gate_up + wide_place;
  store_words<3, T>({a.out + narrow_place, d_gate, d_gate + a.columns}, {left, left, left}, whole,
                    {row_word<T>::narrow(d), row_word<T>::narrow(g), row_word<T>::narrow(u)});
}

template <element T>
void run(stream& on, kernel::swiglu_forward<T> const& a) {
  auto const across = pieces_of(a.columns, swiglu_threads * word<T>);
  start(on, swiglu_forward_kernel<T>, a.rows * across, swiglu_threads, 0, a, static_cast<int>(across),
        whole_words(a.columns, a.gate_up, a.out));
}
template <element T>
void run(stream& on, kernel::swiglu_backward<T> const& a) {
  auto const across = pieces_of(a.columns, swiglu_threads * word<T>);
  start(on, swiglu_backward_kernel<T>, a.rows * across, swiglu_threads, 0, a, static_cast<int>(across),
        whole_words(a.columns, a.d_out, a.gate_up, a.d_gate_up, a.out));
}

}  // namespace superoffload::cuda::kernels
