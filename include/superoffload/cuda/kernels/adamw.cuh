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

/// As bfloat16::master_of joins: the low bits are a signed number.
__device__ inline float master_of(bfloat16 weight, std::uint16_t low) {
  return __uint_as_float((static_cast<unsigned>(weight.bits) << 16) +
                         static_cast<unsigned>(static_cast<int>(static_cast<std::int16_t>(low))));
}
__device__ inline float master_of(bfloat16 weight, std::uint8_t low) {
  return master_of(weight, static_cast<std::uint16_t>(low << 8));
}

/// Elements of a thread: 16 bytes of each float moment, so that those of a warp lie side by side.
inline constexpr int adamw_elements = 4;

/// The largest value of the threads that share a block of format int8. All of them call it, or none.
__device__ inline unsigned greatest_of_block(unsigned value) {
  constexpr unsigned threads = static_cast<unsigned>(kernel::state_block) / adamw_elements;
  static_assert(threads == 16);
  unsigned const all = 0xFFFFU << (threadIdx.x & 16U);
#pragma unroll
  for (unsigned distance = threads / 2; distance > 0; distance /= 2) {
    value = max(value, __shfl_xor_sync(all, value, static_cast<int>(distance), threads));
  }
  return value;
}

/// A thread's part of a moment.
template <state_format F, kernel::moment Of>
struct moment_part {
  static constexpr int n = adamw_elements;
  float values[n];

  __device__ void load_from(kernel::moments<F> from, std::int64_t i, std::int64_t left) {
    if constexpr (F == state_format::int8) {
      using code = kernel::moment_code<F, Of>;
      alignas(16) std::uint8_t codes[n];
      load_exact(from.codes + i, left, codes);
      auto const base = code::base(unsigned{from.exponents[i / kernel::state_block]});
#pragma unroll
      for (int j = 0; j < n; ++j) { values[j] = __uint_as_float(code::decoded(unsigned{codes[j]}, base)); }
    } else {
      load(from + i, left, values);
    }
  }
  __device__ void store_to(kernel::moments<F> to, std::int64_t i, std::int64_t left,
                           unsigned const (&noise)[n]) const {
    if constexpr (F == state_format::float32) {
      store(to + i, left, values);
    } else if constexpr (F == state_format::bf16) {
      alignas(16) bfloat16 rounded[n];
#pragma unroll
      for (int j = 0; j < n; ++j) {
        rounded[j].bits = static_cast<std::uint16_t>(
            kernel::moment_code<F, Of>::rounded(__float_as_uint(values[j]), noise[j]) >> 16);
      }
      store_exact(to + i, left, rounded);
    } else {
      using code = kernel::moment_code<F, Of>;
      unsigned greatest = 0;
#pragma unroll
      for (int j = 0; j < n; ++j) { greatest = max(greatest, __float_as_uint(values[j]) & 0x7FFFFFFFU); }
      auto const exponent = code::exponent(greatest_of_block(greatest));
      if (i % kernel::state_block == 0) {
        to.exponents[i / kernel::state_block] = static_cast<std::uint8_t>(exponent);
      }
      alignas(16) std::uint8_t codes[n];
#pragma unroll
      for (int j = 0; j < n; ++j) {
        codes[j] = static_cast<std::uint8_t>(
            code::encoded(__float_as_uint(values[j]), code::base(exponent), noise[j]));
      }
      store_exact(to.codes + i, left, codes);
    }
  }
};

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
  moment_part<F, kernel::moment::m> m;
  moment_part<F, kernel::moment::v> v;
  float g[n];
  unsigned noise[n];
  load_exact(a.weight + i, left, weight);
  if constexpr (split) {
    load_exact(a.low + i, left, low);
  }
  m.load_from(a.m, i, left);
  v.load_from(a.v, i, left);
  load(a.gradient + i, left, g);
#pragma unroll
  for (int j = 0; j < n; ++j) {
    exact_float w_j, m_j = m.values[j], v_j = v.values[j];
    if constexpr (split) {
      w_j = master_of(weight[j], low[j]);
    } else {
      w_j = weight[j];
    }
    kernel::adamw_rule(w_j, m_j, v_j, exact_float{widen(narrow<T>(g[j]))}, a.step, exact_root{});
    if constexpr (F != state_format::float32) {
      noise[j] = kernel::noise_of(static_cast<unsigned>(a.index + i + j), a.step.noise);
    }
    auto const bits = kernel::rounded_master<T, F>(__float_as_uint(without_nan_payload(w_j.value)), noise[j]);
    auto const master = __uint_as_float(bits);
    if constexpr (split) {
      weight[j] = weight_of(master);
      low[j] = static_cast<kernel::low_bits<F>>(bits >> (F == state_format::int8 ? 8 : 0));
    } else {
      weight[j] = master;
    }
    m.values[j] = without_nan_payload(m_j.value);
    v.values[j] = without_nan_payload(v_j.value);
  }
  store_exact(a.weight + i, left, weight);
  if constexpr (split) {
    store_exact(a.low + i, left, low);
  }
  m.store_to(a.m, i, left, noise);
  v.store_to(a.v, i, left, noise);
}

template <element T, element G, state_format F>
void run(stream& on, kernel::adamw<T, G, F> const& a) {
  start(on, adamw_kernel<T, G, F>, flat_blocks<adamw_elements>(a.count), flat_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
