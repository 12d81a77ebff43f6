// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

// Numbers for a rule that several processors compute (kernel::adamw_rule): each operation is rounded for
// itself, to nearest even, and the compiler may not fuse two of them. So every processor gives the same bits.
namespace superoffload::cuda::kernels {

/// A float with the operations that are the same for all magnitudes.
template <class Number>
struct rounded_float {
  float value;

  rounded_float() = default;
  __host__ __device__ constexpr rounded_float(float x) : value{x} {}

#ifdef __CUDA_ARCH__
  friend __device__ Number operator+(Number a, Number b) { return __fadd_rn(a.value, b.value); }
  friend __device__ Number operator-(Number a, Number b) { return __fsub_rn(a.value, b.value); }
  friend __device__ Number operator*(Number a, Number b) { return __fmul_rn(a.value, b.value); }
#else  // the rule is a constexpr function, so that the host's compiler sees it too
  friend Number operator+(Number a, Number b) { return a.value + b.value; }
  friend Number operator-(Number a, Number b) { return a.value - b.value; }
  friend Number operator*(Number a, Number b) { return a.value * b.value; }
  friend Number operator/(Number a, Number b) { return a.value / b.value; }
#endif
};

/// Any floats.
struct exact_float : rounded_float<exact_float> {
  using rounded_float::rounded_float;

#ifdef __CUDA_ARCH__
  friend __device__ exact_float operator/(exact_float a, exact_float b) {
    return __fdiv_rn(a.value, b.value);
  }
#endif

  /// The square root.
  struct root {
    __host__ __device__ exact_float operator()(exact_float x) const {
#ifdef __CUDA_ARCH__
      return __fsqrt_rn(x.value);
#else
      return x;
#endif
    }
  };
};

/// Floats of usual magnitude, whose quotients and roots need no branches: the bits of exact_float in a third
/// of the instructions. Each is refined from the hardware's approximation as CUDA does where no operand is
/// extreme (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
struct usual_float : rounded_float<usual_float> {
  using rounded_float::rounded_float;

  /// Bounds of operands.
  static constexpr float largest = 0x1p60F,  ///< above every dividend's magnitude, and above what has a root
      least = 0x1p-64F,                      ///< of a dividend that is not zero
      least_divisor = 0x1p-60F, largest_divisor = 0x1p60F;

#ifdef __CUDA_ARCH__
  /// `b` is positive.
  friend __device__ usual_float operator/(usual_float a, usual_float b) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b.value));
    r = __fmaf_rn(r, __fmaf_rn(-b.value, r, 1.0F), r);
    auto const q = __fmul_rn(a.value, r);
    auto const refined = __fmaf_rn(r, __fmaf_rn(-b.value, q, a.value), q);
    // The sign of a zero is lost above.
    return __uint_as_float(__float_as_uint(refined) | (__float_as_uint(a.value) & 0x80000000U));
  }
#endif

  /// The square root of zero or a positive number, also a subnormal one.
  struct root {
    __host__ __device__ usual_float operator()(usual_float x) const {
#ifdef __CUDA_ARCH__
      auto const scaled = __fmul_rn(x.value, 0x1p64F);  // no subnormal
      float r;
      asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(fmaxf(scaled, 0x1p-100F)));  // 0 has a finite one
      auto const s = __fmul_rn(scaled, r);
      auto const refined = __fmaf_rn(__fmaf_rn(-s, s, scaled), __fmul_rn(r, 0.5F), s);
      return __fmul_rn(refined, 0x1p-32F);
#else
      return x;
#endif
    }
  };
};

}  // namespace superoffload::cuda::kernels
