// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/elementwise.cuh>
#include <superoffload/cuda/kernels/exact_float.cuh>
#include <superoffload/kernel/adamw.hpp>

namespace superoffload::cuda::kernels {

__device__ inline float without_nan_payload(float x) { return x == x ? x : __uint_as_float(0x7FC00000U); }

/// As bfloat16::of_master rounds.
__device__ inline bfloat16 weight_of(float master) {
  bfloat16 weight;
  weight.bits = static_cast<std::uint16_t>((__float_as_uint(master) + 0x8000U) >> 16);
  return weight;
}

/// As bfloat16::master_of joins: the low bits are a signed number.
__device__ inline float master_of(bfloat16 weight, std::uint16_t low) {
  return __uint_as_float((static_cast<unsigned>(weight.bits) << 16) +
                         static_cast<unsigned>(static_cast<int>(static_cast<std::int16_t>(low))));
}
__device__ inline float master_of(bfloat16 weight, std::uint8_t low) {
  return __uint_as_float((static_cast<unsigned>(weight.bits) << 16) +
                         static_cast<unsigned>(static_cast<std::int8_t>(low) * 256));
}
template <class Low>
__device__ float master_of(float weight, Low) {
  return weight;
}

/// An element's gradient of type G in the type T, widened.
template <class T, class G>
__device__ float gradient_of(float g) {
  return std::is_same_v<T, G> ? g : widen(narrow<T>(g));
}

/// An element's step; the result is its new master.
template <class Number>
__device__ float updated(float master, float& m, float& v, float gradient, kernel::adamw_step const& s) {
  Number w = master, next_m = m, next_v = v;
  kernel::adamw_rule(w, next_m, next_v, Number{gradient}, s, typename Number::root{});
  constexpr bool any = std::is_same_v<Number, exact_float>;
  m = any ? without_nan_payload(next_m.value) : next_m.value;
  v = any ? without_nan_payload(next_v.value) : next_v.value;
  return any ? without_nan_payload(w.value) : w.value;
}

/// The bits of the largest magnitude.
template <int N>
__device__ unsigned greatest_bits(float const (&values)[N]) {
  unsigned greatest = 0;
#pragma unroll
  for (int j = 0; j < N; ++j) { greatest = max(greatest, __float_as_uint(values[j]) & 0x7FFFFFFFU); }
  return greatest;
}

/// Are these new masters and moments right that usual_float has given? They are if no number was extreme; a
/// NaN is, since its bits are the hardware's.
template <int N>
__device__ bool are_usual(float const (&masters)[N], float const (&m)[N], float const (&v)[N],
                          kernel::adamw_step const& s) {
  bool any_nan = false;
  auto least = 0xFFFFFFFFU;  // of the m that are not zero, less 1
#pragma unroll
  for (int j = 0; j < N; ++j) {
    any_nan = any_nan || masters[j] != masters[j];
    least = min(least, (__float_as_uint(m[j]) & 0x7FFFFFFFU) - 1U);
  }
  return !any_nan && max(greatest_bits(m), greatest_bits(v)) < __float_as_uint(usual_float::largest) &&
         least >= __float_as_uint(usual_float::least) - 1U && s.epsilon >= usual_float::least_divisor &&
         s.epsilon <= 1.0F && s.inverse_root2 <= 0x1p20F;
}

/// Elements of a thread: 16 bytes of each float moment, so that those of a warp lie side by side.
inline constexpr int adamw_elements = 4;

template <state_format F, kernel::moment Of>
__device__ void store_moments(kernel::moments<F> to, std::int64_t left, float const (&values)[adamw_elements],
                              unsigned const (&noise)[adamw_elements]) {
  if constexpr (F == state_format::float32) {
    store(to, left, values);
  } else {
    constexpr int n = adamw_elements;
    alignas(16) bfloat16 rounded[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      rounded[j].bits = static_cast<std::uint16_t>(
          kernel::moment_code<F, Of>::rounded(__float_as_uint(values[j]), noise[j]) >> 16);
    }
    store_exact(to, left, rounded);
  }
}

template <class T, class G, state_format F>
__global__ void adamw_kernel(kernel::adamw<T, G, F> a) {
  constexpr bool split = std::is_same_v<T, bfloat16>;
  constexpr int n = adamw_elements;
  auto const i = flat_index<n>();
  auto const left = a.count - i;
  if (left <= 0) {
    return;
  }
  alignas(16) T weight[n];
  alignas(16) kernel::low_bits<F> low[n];
  float m[n], v[n], g[n], masters[n], next_m[n], next_v[n];
  unsigned noise[n];
  load_exact(a.weight + i, left, weight);
  if constexpr (split) {
    load_exact(a.low + i, left, low);
  }
  load(a.m + i, left, m);
  load(a.v + i, left, v);
  load(a.gradient + i, left, g);
  auto const update = [&]<class Number>(Number) {
#pragma unroll
    for (int j = 0; j < n; ++j) {
      next_m[j] = m[j];
      next_v[j] = v[j];
      masters[j] = updated<Number>(master_of(weight[j], low[j]), next_m[j], next_v[j],
                                   gradient_of<T, G>(g[j]), a.step);
    }
  };
  // Steps on float32 are bound by memory.
  bool done = false;
  if constexpr (F != state_format::float32) {
    update(usual_float{});
    done = are_usual(masters, next_m, next_v, a.step);
  }
  if (!done) {
    update(exact_float{});
  }
#pragma unroll
  for (int j = 0; j < n; ++j) {
    if constexpr (F != state_format::float32) {
      noise[j] = kernel::noise_of(static_cast<unsigned>(a.index + i + j), a.step.noise);
    }
    auto const bits = kernel::rounded_master<T, F>(__float_as_uint(masters[j]), noise[j]);
    if constexpr (split) {
      weight[j] = weight_of(__uint_as_float(bits));
      low[j] = static_cast<kernel::low_bits<F>>(bits);
    } else {
      weight[j] = __uint_as_float(bits);
    }
  }
  store_exact(a.weight + i, left, weight);
  if constexpr (split) {
    store_exact(a.low + i, left, low);
  }
  store_moments<F, kernel::moment::m>(a.m + i, left, next_m, noise);
  store_moments<F, kernel::moment::v>(a.v + i, left, next_v, noise);
}

template <element T, element G, state_format F>
void run(stream& on, kernel::adamw<T, G, F> const& a) {
  start(on, adamw_kernel<T, G, F>, flat_blocks<adamw_elements>(a.count), flat_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
