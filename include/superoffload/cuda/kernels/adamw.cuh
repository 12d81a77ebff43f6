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

template <class T>
__global__ void adamw_kernel(kernel::adamw<T> a) {
  constexpr int n = lanes<T>;
  auto const i = flat_index<n>();
  auto const left = a.count - i;
  if (left <= 0) {
    return;
  }
  float w[n], m[n], v[n], g[n];
  load(a.master + i, left, w);
  load(a.m + i, left, m);
  load(a.v + i, left, v);
  load(a.gradient + i, left, g);
  alignas(16) T weight[n];
#pragma unroll
  for (int j = 0; j < n; ++j) {
    exact_float w_j = w[j], m_j = m[j], v_j = v[j];
    kernel::adamw_rule(w_j, m_j, v_j, exact_float{g[j]}, a.step, exact_root{});
    w[j] = without_nan_payload(w_j.value);
    m[j] = without_nan_payload(m_j.value);
    v[j] = without_nan_payload(v_j.value);
    if constexpr (std::is_same_v<T, bfloat16>) {
      weight[j] = weight_of(w[j]);
    } else {
      weight[j] = w[j];
    }
  }
  store(a.master + i, left, w);
  store(a.m + i, left, m);
  store(a.v + i, left, v);
  if (static_cast<void const*>(a.weight) != static_cast<void const*>(a.master)) {
    store_exact(a.weight + i, left, weight);
  }
}

template <element T>
void run(stream& on, kernel::adamw<T> const& a) {
  start(on, adamw_kernel<T>, flat_blocks<lanes<T>>(a.count), flat_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
