// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/swiglu.cuh>
#include <superoffload/kernel/expert_swiglu.hpp>

namespace superoffload::cuda::kernels {

/// A block is a row.
template <class T>
constexpr int expert_swiglu_threads(int64_t columns) {
  return threads_for(pieces_of(columns, word<T>), 512);
}

/// The two words of a row that have the gates and ups of a word of columns: one each, or both side by side.
template <kernel::expert_gate Gate, class T>
struct gate_words {
  static constexpr int n = word<T>;
  static constexpr bool apart = Gate == kernel::expert_gate::silu;

  /// From gates to ups, or from the first pairs to the others; and what is there from there on.
  __device__ static int64_t next(int64_t columns) { return apart ? columns : n; }
  __device__ static int64_t left(int64_t columns_left) { return apart ? columns_left : 2 * columns_left; }
  __device__ static int64_t left_of_next(int64_t columns_left) {
    return left(columns_left) - (apart ? 0 : n);
  }
  __device__ static int64_t offset(int64_t i) { return apart ? i : 2 * i; }

  __device__ __forceinline__ static void separate(row_word<T> const& first, row_word<T> const& second,
                                                  wide<T> (&gate)[n], wide<T> (&up)[n]) {
    wide<T> low[n], high[n];
    first.widen(low);
    second.widen(high);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      gate[j] = apart ? low[j] : (2 * j < n ? low : high)[2 * j % n];
      up[j] = apart ? high[j] : (2 * j < n ? low : high)[2 * j % n + 1];
    }
  }
  __device__ __forceinline__ static void join(wide<T> const (&gate)[n], wide<T> const (&up)[n],
                                              row_word<T>& first, row_word<T>& second) {
    wide<T> low[n], high[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if constexpr (apart) {
        low[j] = gate[j];
        high[j] = up[j];
      } else {
        (2 * j < n ? low : high)[2 * j % n] = gate[j];
        (2 * j < n ? low : high)[2 * j % n + 1] = up[j];
      }
    }
    first = row_word<T>::narrow(low);
    second = row_word<T>::narrow(high);
  }
};

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
__global__ void expert_swiglu_forward_kernel(kernel::expert_swiglu_forward<T> a, bool whole) {
  constexpr int n = word<T>;
  using words = gate_words<Gate, T>;
  int64_t const row = blockIdx.x;
  auto const* const gate_up = a.gate_up + 2 * row * a.columns;
  auto const weight = a.weights[a.order[row]];
  auto const limit = static_cast<wide<T>>(a.limit);
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns;
       i += static_cast<int64_t>(blockDim.x) * n) {
    auto const left = a.columns - i;
    auto const* const gates = gate_up + words::offset(i);
    row_word<T> in[2];
    load_words<2, T>({gates, gates + words::next(a.columns)}, {words::left(left), words::left_of_next(left)},
                     whole, in);
    wide<T> g[n], u[n];
    words::separate(in[0], in[1], g, u);
#pragma unroll
    for (int j = 0; j < n; ++j) { g[j] = gated<T, Gate>{g[j], u[j], limit}.value() * weight; }
    store_words<1, T>({a.out + row * a.columns + i}, {left}, whole, {row_word<T>::narrow(g)});
  }
}

template <class T, kernel::expert_gate Gate>
__global__ void expert_swiglu_backward_kernel(kernel::expert_swiglu_backward<T> a, bool whole) {
  constexpr int n = word<T>;
  using words = gate_words<Gate, T>;
  int64_t const row = blockIdx.x;
  auto const choice = a.order[row];
  auto const weight = a.weights[choice];
  auto const limit = static_cast<wide<T>>(a.limit);
  wide<T> products = 0;
  for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns;
       i += static_cast<int64_t>(blockDim.x) * n) {
    auto const left = a.columns - i;
    auto const narrow_place = row * a.columns + i;
    auto const wide_place = 2 * row * a.columns + words::offset(i);
    auto const next = words::next(a.columns);
    int64_t const lefts[] = {left, words::left(left), words::left_of_next(left)};
    row_word<T> at[3];
    load_words<3, T>({a.d_out + narrow_place, a.gate_up + wide_place, a.gate_up + wide_place + next}, lefts,
                     whole, at);
    wide<T> d[n], g[n], u[n];
    at[0].widen(d);
    words::separate(at[1], at[2], g, u);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      gated<T, Gate> const x{g[j], u[j], limit};
      products += d[j] * x.value();
      g[j] = x.d_gate(weight * d[j]);
      u[j] = x.d_up(weight * d[j]);
      d[j] = x.value() * weight;
    }
    at[0] = row_word<T>::narrow(d);
    words::join(g, u, at[1], at[2]);
    store_words<3, T>({a.out + narrow_place, a.d_gate_up + wide_place, a.d_gate_up + wide_place + next},
                      lefts, whole, at);
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
  start(on, kernel, a.rows, expert_swiglu_threads<T>(a.columns), 0, a,
        whole_words(a.columns, a.gate_up, a.out));
}
template <element T>
void run(stream& on, kernel::expert_swiglu_backward<T> const& a) {
  auto* const kernel = a.gate == kernel::expert_gate::silu
                           ? expert_swiglu_backward_kernel<T, kernel::expert_gate::silu>
                           : expert_swiglu_backward_kernel<T, kernel::expert_gate::clamped>;
  start(on, kernel, a.rows, expert_swiglu_threads<T>(a.columns), 0, a,
        whole_words(a.columns, a.d_out, a.gate_up, a.d_gate_up, a.out));
}

}  // namespace superoffload::cuda::kernels
