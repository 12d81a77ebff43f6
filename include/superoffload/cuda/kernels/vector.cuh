// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/stream.hpp>

#include <cstdint>
#include <cuda_runtime.h>
#include <type_traits>

/// Device code. Every kernel gives the same bits for the same arguments: sums have a fixed order, nothing is
/// added by whoever comes first.
namespace superoffload::cuda::kernels {

using std::int32_t;
using std::int64_t;

constexpr int64_t pieces_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

/// Queues `kernel` on `blocks` blocks of `threads` threads; nothing when there are none.
template <class Arguments, class... More>
void start(stream& on, void (*kernel)(Arguments, More...), int64_t blocks, int threads,
           std::size_t shared_bytes, std::type_identity_t<Arguments> const& arguments,
           std::type_identity_t<More>... more) {
  if (blocks == 0) {
    return;
  }
  expect(blocks <= 0x7FFFFFFF, exit_code::bad_input, "a kernel of ", blocks,
         " blocks, but a grid has at most 2147483647; use a smaller batch");
  if (shared_bytes > 48 * 1024) {
    detail::check(
        cudaFuncSetAttribute(reinterpret_cast<void const*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
        concat("a kernel with ", shared_bytes, " bytes of shared memory"), on.name());
  }
  kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared_bytes, on.handle()>>>(
      arguments, more...);
}

/// Threads for `items` of work in a row: whole warps, at most `most`.
constexpr int threads_for(int64_t items, int most = 512) {
  auto const wanted = pieces_of(items < 1 ? 1 : items, 32) * 32;
  return wanted < most ? static_cast<int>(wanted) : most;
}

__device__ inline float widen(bfloat16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ inline float widen(float x) { return x; }
__device__ inline double widen(double x) { return x; }

template <class T>
__device__ T narrow(wide<T> x) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    std::uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    if (x != x) {
      bits = static_cast<std::uint16_t>((__float_as_uint(x) >> 16) | 0x40U);
    }
    T narrowed;
    narrowed.bits = bits;
    return narrowed;
  } else {
    return x;
  }
}

/// Rounded once, to nearest even: by way of a float that keeps, as an odd last bit, that something was cut
/// off.
template <class T>
__device__ T narrow_double(double x) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    auto const nearest = __double2float_rn(x);
    auto bits = __float_as_uint(nearest);
    if (static_cast<double>(nearest) != x && x == x) {
      if (fabs(static_cast<double>(nearest)) > fabs(x)) {
        --bits;
      }
      bits |= 1U;
    }
    return narrow<bfloat16>(__uint_as_float(bits));
  } else {
    return static_cast<T>(x);
  }
}

/// Elements that a thread handles at a time: 16 bytes of the narrowest of the types, or more.
template <class... T>
inline constexpr int lanes = (std::is_same_v<T, bfloat16> || ...) ? 8
                             : (std::is_same_v<T, float> || ...)  ? 4
                                                                  : 2;

template <class... T>
__device__ __forceinline__ bool aligned(T const*... pointers) {
  return (reinterpret_cast<std::uintptr_t>(pointers) | ...) % 16 == 0;
}

/// The N elements at `from`, a multiple of 16 bytes.
template <int N, class T>
__device__ __forceinline__ void load_aligned(T const* from, wide<T> (&x)[N]) {
  static_assert(N * sizeof(T) % 16 == 0);
  constexpr int words = N * static_cast<int>(sizeof(T)) / 16;
  alignas(16) T buffer[N];
#pragma unroll
  for (int i = 0; i < words; ++i) {
    reinterpret_cast<uint4*>(buffer)[i] = reinterpret_cast<uint4 const*>(from)[i];
  }
#pragma unroll
  for (int i = 0; i < N; ++i) { x[i] = widen(buffer[i]); }
}

/// The N elements at `from`, in accesses of 16 bytes where the address allows it; `filler` for those behind
/// the first `left`.
template <int N, class T>
__device__ __forceinline__ void load(T const* from, int64_t left, wide<T> (&x)[N], wide<T> filler = 0) {
  if (left >= N && aligned(from)) {
    load_aligned(from, x);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) { x[i] = i < left ? widen(from[i]) : filler; }
  }
}

/// Stores the first `left` of N elements.
template <int N, class T>
__device__ __forceinline__ void store_exact(T* to, int64_t left, T const (&x)[N]) {
  static_assert(N * sizeof(T) % 16 == 0);
  if (left >= N && aligned(to)) {
    constexpr int words = N * static_cast<int>(sizeof(T)) / 16;
#pragma unroll
    for (int i = 0; i < words; ++i) {
      reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<uint4 const*>(x)[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i < left) {
        to[i] = x[i];
      }
    }
  }
}

/// Rounds to T and stores the first `left`.
template <int N, class T>
__device__ __forceinline__ void store(T* to, int64_t left, wide<T> const (&x)[N]) {
  alignas(16) T buffer[N];
#pragma unroll
  for (int i = 0; i < N; ++i) { buffer[i] = narrow<T>(x[i]); }
  store_exact(to, left, buffer);
}

struct sum_of {
  template <class W>
  __device__ W operator()(W a, W b) const {
    return a + b;
  }
};
struct max_of {
  template <class W>
  __device__ W operator()(W a, W b) const {
    return a > b ? a : b;
  }
};

template <class W, class Operation>
__device__ __forceinline__ W over_warp(W x, Operation operation) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    x = operation(x, __shfl_xor_sync(0xFFFFFFFFU, x, distance));
  }
  return x;
}

/// The result over all threads of a block of whole warps, given to each of them.
template <class W, class Operation>
__device__ W over_block(W x, W neutral, Operation operation) {
  __shared__ W of_warps[32];
  x = over_warp(x, operation);
  __syncthreads();  // an earlier use may still be read
  if (threadIdx.x % 32 == 0) {
    of_warps[threadIdx.x / 32] = x;
  }
  __syncthreads();
  auto const lane = threadIdx.x % 32;
  return over_warp(lane < blockDim.x / 32 ? of_warps[lane] : neutral, operation);
}

/// The exponential as precise as results rounded to T need it.
template <class T>
__device__ __forceinline__ wide<T> exp_for(wide<T> x) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return __expf(x);
  } else if constexpr (std::is_same_v<T, float>) {
    return expf(x);
  } else {
    return exp(x);
  }
}
template <class T>
__device__ __forceinline__ wide<T> quotient_for(wide<T> a, wide<T> b) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return __fdividef(a, b);
  } else {
    return a / b;
  }
}

}  // namespace superoffload::cuda::kernels
