// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/elementwise.cuh>
#include <superoffload/kernel/adamw.hpp>

namespace superoffload::cuda::kernels {

/// A float whose operations are rounded each for itself: the compiler may not fuse them.
struct exact_float {
  float value;

  exact_float() = default;
  __host__ __device__ constexpr exact_float(float x) : value{x} {}

#ifdef __CUDA_ARCH__
  friend __device__ exact_float operator+(exact_float a, exact_float b) {
    return __fadd_rn(a.value, b.value);
  }
  friend __device__ exact_float operator-(exact_float a, exact_float b) {
    return __fsub_rn(a.value, b.value);
  }
  friend __device__ exact_float operator*(exact_float a, exact_float b) {
    return __fmul_rn(a.value, b.value);
  }
  friend __device__ exact_float operator/(exact_float a, exact_float b) {
    return __fdiv_rn(a.value, b.value);
  }
#else  // the rule is a constexpr function, so that the host's compiler sees it too
  friend exact_float operator+(exact_float a, exact_float b) { return a.value + b.value; }
  friend exact_float operator-(exact_float a, exact_float b) { return a.value - b.value; }
  friend exact_float operator*(exact_float a, exact_float b) { return a.value * b.value; }
  friend exact_float operator/(exact_float a, exact_float b) { return a.value / b.value; }
#endif
};

struct exact_root {
  __host__ __device__ exact_float operator()(exact_float x) const {
#ifdef __CUDA_ARCH__
    return __fsqrt_rn(x.value);
#else
    return x;
#endif
  }
};

__device__ inline float without_nan_payload(float x) { return x == x ? x : __uint_as_float(0x7FC00000U); }

/// As bfloat16::of_master rounds.
__device__ inline bfloat16 weight_of(float master) {
  bfloat16 weight;
  weight.bits = static_cast<std::uint16_t>((__float_as_uint(master) + 0x8000U) >> 16);
  return weight;
}

/// As bfloat16::master_of joins.
__device__ inline float master_of(bfloat16 weight, std::uint16_t low) {
  return __uint_as_float((static_cast<unsigned>(weight.bits) << 16) +
                         static_cast<unsigned>(static_cast<int>(static_cast<std::int16_t>(low))));
}

/// Elements of a thread: 16 bytes of each moment, so that those of a warp lie side by side.
inline constexpr int adamw_elements = 4;

template <class T, class G>
__global__ void adamw_kernel(kernel::adamw<T, G> a) {
  constexpr bool split = std::is_same_v<T, bfloat16>;
  constexpr int n = adamw_elements;
  auto const i = flat_index<n>();
  auto const left = a.count - i;
  if (left <= 0) {
    return;
  }
  alignas(16) T weight[n];
  alignas(16) std::uint16_t low[n];
  float m[n], v[n], g[n];
  load_exact(a.weight + i, left, weight);
  if constexpr (split) {
    load_exact(a.low + i, left, low);
  }
  load(a.m + i, left, m);
  load(a.v + i, left, v);
  load(a.gradient + i, left, g);
#pragma unroll
  for (int j = 0; j < n; ++j) {
    exact_float w_j, m_j = m[j], v_j = v[j];
    if constexpr (split) {
      w_j = master_of(weight[j], low[j]);
    } else {
      w_j = weight[j];
    }
    kernel::adamw_rule(w_j, m_j, v_j, exact_float{widen(narrow<T>(g[j]))}, a.step, exact_root{});
    auto const master = without_nan_payload(w_j.value);
    if constexpr (split) {
      weight[j] = weight_of(master);
      low[j] = static_cast<std::uint16_t>(__float_as_uint(master));
    } else {
      weight[j] = master;
    }
    m[j] = without_nan_payload(m_j.value);
    v[j] = without_nan_payload(v_j.value);
  }
  store_exact(a.weight + i, left, weight);
  if constexpr (split) {
    store_exact(a.low + i, left, low);
  }
  store(a.m + i, left, m);
  store(a.v + i, left, v);
}

template <element T, element G>
void run(stream& on, kernel::adamw<T, G> const& a) {
  start(on, adamw_kernel<T, G>, flat_blocks<adamw_elements>(a.count), flat_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
