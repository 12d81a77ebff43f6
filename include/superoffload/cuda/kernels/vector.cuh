// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/stream.hpp>

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>
#include <type_traits>

/// Device code. Every kernel gives the same bits for the same arguments: sums have a fixed order, which does
/// not depend on which thread arrives first.
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

/// Queues `kernel` on clusters of `blocks` blocks: as many as run at once, at most `clusters`.
template <class Arguments, class... More>
void start_clusters(stream& on, void (*kernel)(Arguments, More...), int64_t clusters, int blocks, int threads,
                    std::size_t shared_bytes, std::type_identity_t<Arguments> const& arguments,
                    std::type_identity_t<More>... more) {
  if (clusters == 0) {
    return;
  }
  auto const check = [&](cudaError_t status, std::string_view call) {
    detail::check(status, call, on.name());
  };
  check(cudaFuncSetAttribute(reinterpret_cast<void const*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
        "cudaFuncSetAttribute");
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t configuration{};
  configuration.gridDim = static_cast<unsigned>(blocks);
  configuration.blockDim = static_cast<unsigned>(threads);
  configuration.dynamicSmemBytes = shared_bytes;
  configuration.stream = on.handle();
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  int at_once = 0;
  check(cudaOccupancyMaxActiveClusters(&at_once, kernel, &configuration), "cudaOccupancyMaxActiveClusters");
  configuration.gridDim = static_cast<unsigned>(std::clamp<int64_t>(at_once, 1, clusters) * blocks);
  check(cudaLaunchKernelEx(&configuration, kernel, arguments, more...), "cudaLaunchKernelEx");
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

/// Two numbers in the order of memory, rounded to nearest even; any NaN becomes a NaN.
__device__ __forceinline__ unsigned narrow_pair(float first, float second) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
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

/// What N elements are accessed as: pieces of 16 bytes, or one of 8 or 4.
template <int N, class T>
using access = std::conditional_t<N * sizeof(T) % 16 == 0, uint4,
                                  std::conditional_t<N * sizeof(T) == 8, uint2, unsigned>>;
template <int N, class T>
inline constexpr int accesses = static_cast<int>(N * sizeof(T) / sizeof(access<N, T>));

template <int N, class T>
__host__ __device__ __forceinline__ bool aligned(T const* pointer) {
  static_assert(N * sizeof(T) % sizeof(access<N, T>) == 0);
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(access<N, T>) == 0;
}

/// The N elements at `from`, which is aligned.
template <int N, class T>
__device__ __forceinline__ void load_aligned(T const* from, wide<T> (&x)[N]) {
  alignas(16) T buffer[N];
#pragma unroll
  for (int i = 0; i < accesses<N, T>; ++i) {
    reinterpret_cast<access<N, T>*>(buffer)[i] = reinterpret_cast<access<N, T> const*>(from)[i];
  }
#pragma unroll
  for (int i = 0; i < N; ++i) { x[i] = widen(buffer[i]); }
}

/// The N elements at `from`, in large accesses where the address allows it; `filler` for those behind
/// the first `left`.
template <int N, class T>
__device__ __forceinline__ void load(T const* from, int64_t left, wide<T> (&x)[N], wide<T> filler = 0) {
  if (left >= N && aligned<N>(from)) {
    load_aligned(from, x);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) { x[i] = i < left ? widen(from[i]) : filler; }
  }
}

/// The first `left` of the N elements at `from` as they are, zeros for those behind; `x` is aligned to 16
/// bytes.
template <int N, class T>
__device__ __forceinline__ void load_exact(T const* from, int64_t left, T (&x)[N]) {
  if (left >= N && aligned<N>(from)) {
#pragma unroll
    for (int i = 0; i < accesses<N, T>; ++i) {
      reinterpret_cast<access<N, T>*>(x)[i] = reinterpret_cast<access<N, T> const*>(from)[i];
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) { x[i] = i < left ? from[i] : T{}; }
  }
}

/// Stores the first `left` of N elements.
template <int N, class T>
__device__ __forceinline__ void store_exact(T* to, int64_t left, T const (&x)[N]) {
  if (left >= N && aligned<N>(to)) {
#pragma unroll
    for (int i = 0; i < accesses<N, T>; ++i) {
      reinterpret_cast<access<N, T>*>(to)[i] = reinterpret_cast<access<N, T> const*>(x)[i];
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

/// Elements in 16 bytes.
template <class T>
inline constexpr int word = static_cast<int>(16 / sizeof(T));

/// 16 bytes of a row as memory has them: what is kept in registers should take no more of them than it
/// must.
template <class T>
struct row_word {
  uint4 bits;

  __device__ __forceinline__ static row_word zero() { return {uint4{0, 0, 0, 0}}; }
  __device__ __forceinline__ static row_word load(T const* from) {
    return {*reinterpret_cast<uint4 const*>(from)};
  }
  __device__ __forceinline__ void store(T* to) const { *reinterpret_cast<uint4*>(to) = bits; }
  /// At any address, and only the first `left` elements; zeros for those behind.
  __device__ __forceinline__ static row_word load(T const* from, int64_t left) {
    row_word some;
    load_exact(from, left, reinterpret_cast<T(&)[word<T>]>(some.bits));
    return some;
  }
  __device__ __forceinline__ void store(T* to, int64_t left) const {
    store_exact(to, left, reinterpret_cast<T const(&)[word<T>]>(bits));
  }

  __device__ __forceinline__ void widen(wide<T> (&x)[word<T>]) const {
    if constexpr (std::is_same_v<T, bfloat16>) {
      unsigned const pairs[] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[2 * i] = __uint_as_float(pairs[i] << 16);
        x[2 * i + 1] = __uint_as_float(pairs[i] & 0xFFFF0000U);
      }
    } else {
      auto const& from = reinterpret_cast<T const(&)[word<T>]>(bits);
#pragma unroll
      for (int i = 0; i < word<T>; ++i) { x[i] = from[i]; }
    }
  }
  /// Rounded to nearest even; any NaN is a NaN.
  __device__ __forceinline__ static row_word narrow(wide<T> const (&x)[word<T>]) {
    row_word word_of;
    if constexpr (std::is_same_v<T, bfloat16>) {
      word_of.bits = uint4{narrow_pair(x[0], x[1]), narrow_pair(x[2], x[3]), narrow_pair(x[4], x[5]),
                           narrow_pair(x[6], x[7])};
    } else {
      auto& to = reinterpret_cast<T(&)[word<T>]>(word_of.bits);
#pragma unroll
      for (int i = 0; i < word<T>; ++i) { to[i] = x[i]; }
    }
    return word_of;
  }
  /// Makes the compiler forget that it has widened this before, and keep these 4 registers instead.
  __device__ __forceinline__ void keep_narrow() {
    asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
  }
};

template <class T>
bool aligned_to(std::size_t bytes, T const* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

/// Can matrices of this many columns be read word by word?
template <class T, class... More>
bool whole_words(int64_t columns, T const* first, More const*... more) {
  auto const bits = (reinterpret_cast<std::uintptr_t>(first) | ... | reinterpret_cast<std::uintptr_t>(more));
  return columns % word<T> == 0 && bits % 16 == 0;
}

/// Several words of rows: all are on their way before one is used. `whole`: see whole_words; otherwise each
/// has `left` elements at most.
template <int N, class T>
__device__ __forceinline__ void load_words(T const* const (&from)[N], int64_t const (&left)[N], bool whole,
                                           row_word<T> (&words)[N]) {
  if (whole) {
#pragma unroll
    for (int w = 0; w < N; ++w) { words[w] = row_word<T>::load(from[w]); }
  } else {
#pragma unroll
    for (int w = 0; w < N; ++w) { words[w] = row_word<T>::load(from[w], left[w]); }
  }
}
template <int N, class T>
__device__ __forceinline__ void store_words(T* const (&to)[N], int64_t const (&left)[N], bool whole,
                                            row_word<T> const (&words)[N]) {
  if (whole) {
#pragma unroll
    for (int w = 0; w < N; ++w) { words[w].store(to[w]); }
  } else {
#pragma unroll
    for (int w = 0; w < N; ++w) { words[w].store(to[w], left[w]); }
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

/// The sum over the threads of a row: a power of 2 of them up to a warp, or the whole block.
template <class W>
__device__ __forceinline__ W over_row(W x, int row_threads) {
  if (row_threads > 32) {
    return over_block(x, W{0}, sum_of{});
  }
  for (int distance = row_threads / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(0xFFFFFFFFU, x, distance);
  }
  return x;
}

/// At least `wanted` threads for a row, as over_row takes them.
constexpr int row_threads_for(int64_t wanted) {
  if (wanted > 32) {
    return threads_for(wanted, 1024);
  }
  int threads = 1;
  while (threads < wanted) { threads *= 2; }
  return threads;
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

}  // namespace superoffload::cuda::kernels
