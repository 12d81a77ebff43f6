// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/gemms.hpp>
#include <superoffload/cuda/kernels/gemm.cuh>
#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/float8.hpp>

namespace superoffload::cuda::kernels {

inline constexpr int magnitude_threads = 512, magnitude_blocks = 1056;

/// The largest of the low 15 bits of both halves of each word.
__device__ __forceinline__ unsigned larger_halves(unsigned largest, unsigned word) {
  return __vmaxu2(largest, word & 0x7FFF7FFFU);
}

template <class Unused = void>
__global__ void __launch_bounds__(magnitude_threads)
    largest_magnitude_kernel(kernel::largest_magnitude a, bool whole) {
  constexpr int n = word<bfloat16>, ahead = 4;
  auto const step = static_cast<int64_t>(gridDim.x) * magnitude_threads;
  auto const words = whole ? a.count / n : 0;
  auto const thread = static_cast<int64_t>(blockIdx.x) * magnitude_threads + threadIdx.x;
  auto const* const x = reinterpret_cast<uint4 const*>(a.x);
  unsigned largest = 0;
  auto i = thread;
  for (; i + (ahead - 1) * step < words; i += ahead * step) {
    uint4 some[ahead];
#pragma unroll
    for (int w = 0; w < ahead; ++w) { some[w] = x[i + w * step]; }
#pragma unroll
    for (int w = 0; w < ahead; ++w) {
      for (auto const bits : {some[w].x, some[w].y, some[w].z, some[w].w}) {
        largest = larger_halves(largest, bits);
      }
    }
  }
  for (; i < words; i += step) {
    auto const one = x[i];
    for (auto const bits : {one.x, one.y, one.z, one.w}) { largest = larger_halves(largest, bits); }
  }
  for (auto at = words * n + thread; at < a.count; at += step) {
    largest = larger_halves(largest, a.x[at].bits);
  }
  auto const low = largest & 0xFFFFU, high = largest >> 16;
  auto const of_block = over_block(low > high ? low : high, 0U, max_of{});
  if (threadIdx.x == 0 && of_block != 0) {
    atomicMax(a.bits, of_block << 16);
  }
}

inline void run(stream& on, kernel::largest_magnitude const& a) {
  auto const blocks = pieces_of(a.count, int64_t{word<bfloat16>} * magnitude_threads);
  start(on, largest_magnitude_kernel<>, std::min<int64_t>(blocks, magnitude_blocks), magnitude_threads, 0, a,
        aligned_to(16, a.x));
}

/// float8_scale::of, which nvcc may not call here.
__device__ __forceinline__ float8_scale scale_of(unsigned largest) {
  constexpr unsigned limit = 135U << 23 | 0x600000U, fraction = 0x7FFFFFU;  // 448
  if (largest >= 0x7F800000U) {
    auto const nan = __uint_as_float(0x7FC00000U);
    return {nan, nan};
  }
  auto const exponent =
      127U + (limit >> 23) - (largest >> 23) - ((largest & fraction) > (limit & fraction) ? 1U : 0U);
  auto const of_factor = exponent > 253U ? 253U : exponent;
  return {__uint_as_float(of_factor << 23), __uint_as_float((254U - of_factor) << 23)};
}

/// Two numbers in the order of memory. Processors before compute capability 8.9 lack the instruction, and
/// cuda::device says so (multiplies_float8).
__device__ __forceinline__ unsigned quantize_pair(float first, float second) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
#else
  __trap();
  return 0;
#endif
}

/// A block quantizes a tile of this side: each thread 16 numbers of a row, then 4 x 4 of the transposed tile.
inline constexpr int float8_tile = 64, float8_threads = 256,
                     float8_of_thread = float8_tile * float8_tile / float8_threads;

/// Rounds 16 numbers of a row from `column` on and stores them in `out`, if there is one. `left`: the columns
/// that the row has there; zeros for those behind. `whole`: all 16, at aligned addresses.
__device__ __forceinline__ uint4 quantize_row(bfloat16 const* x, float8* out, int64_t left, float factor,
                                              bool whole) {
  unsigned words[4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float values[8];
    if (whole) {
      row_word<bfloat16>::load(x + 8 * half).widen(values);
    } else {
      row_word<bfloat16>::load(x + 8 * half, left - 8 * half).widen(values);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) { values[j] *= factor; }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      words[2 * half + j] = quantize_pair(values[4 * j], values[4 * j + 1]) |
                            quantize_pair(values[4 * j + 2], values[4 * j + 3]) << 16;
    }
  }
  uint4 const all{words[0], words[1], words[2], words[3]};
  if (out != nullptr && whole) {
    *reinterpret_cast<uint4*>(out) = all;
  } else if (out != nullptr) {
#pragma unroll
    for (int j = 0; j < float8_of_thread; ++j) {
      if (j < left) {
        out[j].bits = static_cast<std::uint8_t>(words[j / 4] >> (8 * (j % 4)));
      }
    }
  }
  return all;
}

/// Transposes 4 x 4 numbers, one row in each word.
__device__ __forceinline__ void transpose(unsigned const (&rows)[4], unsigned (&columns)[4]) {
  auto const low = __byte_perm(rows[0], rows[1], 0x5140), low_next = __byte_perm(rows[2], rows[3], 0x5140);
  auto const high = __byte_perm(rows[0], rows[1], 0x7362), high_next = __byte_perm(rows[2], rows[3], 0x7362);
  columns[0] = __byte_perm(low, low_next, 0x5410);
  columns[1] = __byte_perm(low, low_next, 0x7632);
  columns[2] = __byte_perm(high, high_next, 0x5410);
  columns[3] = __byte_perm(high, high_next, 0x7632);
}

/// Stores four numbers of a column from `row` on, as far as the transposed matrix has them.
__device__ __forceinline__ void store_column(kernel::quantize const& a, int64_t column, int64_t row,
                                             unsigned numbers, bool whole) {
  auto* const to = a.transposed + column * a.stride + row;
  if (whole) {
    if (row < a.stride) {
      *reinterpret_cast<unsigned*>(to) = numbers;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (row + i < a.stride) {
      to[i].bits = static_cast<std::uint8_t>(numbers >> (8 * i));
    }
  }
}

template <class Unused = void>
__global__ void __launch_bounds__(float8_threads)
    quantize_kernel(kernel::quantize a, int64_t across, bool whole, bool whole_transposed) {
  constexpr int side = float8_tile, words = side / 4, words_of_thread = float8_of_thread / 4;
  __shared__ unsigned tile[side][words + 1];
  auto const scale = scale_of(*a.largest);
  int const thread = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0 && thread == 0) {
    *a.inverse = scale.inverse;
  }
  auto const first_row = blockIdx.x / across * side, first_column = blockIdx.x % across * side;
  int const r = thread / words_of_thread, word_of_row = thread % words_of_thread * words_of_thread;
  auto const row = first_row + r, column = first_column + 4 * word_of_row;
  uint4 numbers{0, 0, 0, 0};
  if (row < a.rows && column < a.columns) {
    auto const at = row * a.columns + column;
    auto* const out = a.out == nullptr ? nullptr : a.out + at;
    numbers = quantize_row(a.x + at, out, a.columns - column, scale.factor, whole);
  }
  if (a.transposed == nullptr) {
    return;
  }
  tile[r][word_of_row] = numbers.x;
  tile[r][word_of_row + 1] = numbers.y;
  tile[r][word_of_row + 2] = numbers.z;
  tile[r][word_of_row + 3] = numbers.w;
  __syncthreads();
  int const rows_of = thread % words, columns_of = thread / words;
  unsigned in_rows[4], in_columns[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) { in_rows[j] = tile[4 * rows_of + j][columns_of]; }
  transpose(in_rows, in_columns);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    auto const of = first_column + 4 * columns_of + j;
    if (of < a.columns) {
      store_column(a, of, first_row + 4 * rows_of, in_columns[j], whole_transposed);
    }
  }
}

inline void run(stream& on, kernel::quantize const& a) {
  auto const across = std::max<int64_t>(1, pieces_of(a.columns, float8_tile));
  auto const down = std::max<int64_t>(1, pieces_of(std::max(a.rows, a.stride), float8_tile));
  start(on, quantize_kernel<>, down * across, float8_threads, 0, a, across,
        a.columns % 16 == 0 && aligned_to(16, a.x) && aligned_to(16, a.out),
        a.stride % 4 == 0 && aligned_to(4, a.transposed));
}

__device__ __forceinline__ float widen(float8 x) {
  unsigned const sign = (x.bits & 0x80U) << 24, magnitude = x.bits & 0x7FU;
  if (magnitude == 0x7FU) {
    return __uint_as_float(0x7FC00000U);
  }
  // The fields in their places make a float, but for the bias of the exponent.
  auto const value = __uint_as_float(magnitude << 20) * 0x1p120F;
  return __uint_as_float(__float_as_uint(value) | sign);
}

/// Any such GEMM, element by element: for what cuBLASLt does not do.
template <class Out>
__global__ void float8_gemm_kernel(kernel::float8_gemm<Out> g, int64_t across) {
  constexpr int side = gemm_tile;
  __shared__ float a[side][side + 1];
  __shared__ float b[side][side + 1];
  int const x = static_cast<int>(threadIdx.x) % side;
  int const y = static_cast<int>(threadIdx.x) / side;
  auto const first_row = blockIdx.x / across * side, first_column = blockIdx.x % across * side;
  float sum = 0;
  for (int64_t from = 0; from < g.k; from += side) {
    auto const k = from + x;
    a[y][x] = first_row + y < g.m && k < g.k ? widen(g.a[(first_row + y) * g.k + k]) : 0.0F;
    b[y][x] = first_column + y < g.n && k < g.k ? widen(g.b[(first_column + y) * g.k + k]) : 0.0F;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < side; ++i) { sum += a[y][i] * b[x][i]; }
    __syncthreads();
  }
  finish(g, first_row + y, first_column + x, sum * (*g.a_inverse * *g.b_inverse));
}

template <element Out>
void run(stream& on, kernel::float8_gemm<Out> const& g) {
  if (g.m == 0 || g.n == 0) {
    return;
  }
  if (on.gemms().run(on.handle(), g)) {
    return;
  }
  auto const across = pieces_of(g.n, gemm_tile);
  start(on, float8_gemm_kernel<Out>, pieces_of(g.m, gemm_tile) * across, gemm_tile * gemm_tile, 0, g, across);
}

}  // namespace superoffload::cuda::kernels
