// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/adamw.cuh>

// AdamW on state of format int8. A step moves less than half the bytes of one on float32, so that
// instructions take as long as memory. A thread therefore has a part of a block, whole, and computes it
// without branches unless a number in it is extreme.
namespace superoffload::cuda::kernels {

/// Elements of a thread.
inline constexpr int block_part = 8;

/// Byte B of each, in the order of memory.
template <unsigned B>
__device__ __forceinline__ unsigned four_bytes(unsigned a, unsigned b, unsigned c, unsigned d) {
  constexpr unsigned both = B | (B + 4) << 4;
  return __byte_perm(__byte_perm(a, b, both), __byte_perm(c, d, both), 0x5410);
}

/// A thread's part of the masters.
template <class T>
struct master_part;

template <>
struct master_part<bfloat16> {
  unsigned weights[block_part / 2], low[block_part / 4];

  [[nodiscard]] __device__ float value(int j) const {
    auto const high = j % 2 == 0 ? weights[j / 2] << 16 : weights[j / 2] & 0xFFFF0000U;
    // The low byte is signed: its sign fills the upper half.
    constexpr unsigned zero = 4, sign = 8;
    auto const byte = static_cast<unsigned>(j % 4);
    unsigned signed_low;
    asm("prmt.b32 %0, %1, 0, %2;"
        : "=r"(signed_low)
        : "r"(low[j / 4]), "r"(zero | byte << 4 | (sign | byte) << 8 | (sign | byte) << 12));
    return __uint_as_float(high + signed_low);
  }
  __device__ void assign(unsigned const (&bits)[block_part]) {
#pragma unroll
    for (int j = 0; j < block_part; j += 2) {
      weights[j / 2] = __byte_perm(bits[j] + 0x8000U, bits[j + 1] + 0x8000U, 0x7632);
    }
#pragma unroll
    for (int j = 0; j < block_part; j += 4) {
      low[j / 4] = four_bytes<1>(bits[j], bits[j + 1], bits[j + 2], bits[j + 3]);
    }
  }
};

template <>
struct master_part<float> {
  float weights[block_part];

  [[nodiscard]] __device__ float value(int j) const { return weights[j]; }
  __device__ void assign(unsigned const (&bits)[block_part]) {
#pragma unroll
    for (int j = 0; j < block_part; ++j) { weights[j] = __uint_as_float(bits[j]); }
  }
};

/// A thread's part of a block of m or v.
template <kernel::moment Of>
struct moment_part {
  using code = kernel::moment_code<state_format::int8, Of>;
  float values[block_part];

  __device__ void decode(unsigned const (&codes)[block_part / 4], unsigned exponent) {
    auto const base = code::base(exponent);
#pragma unroll
    for (int j = 0; j < block_part; ++j) {
      auto const byte = __byte_perm(codes[j / 4], 0, 0x4440U + static_cast<unsigned>(j % 4));
      values[j] = __uint_as_float(code::decoded(byte, base));
    }
  }
  /// `exponent` is the block's.
  __device__ void encode(unsigned (&codes)[block_part / 4], unsigned exponent,
                         unsigned const (&noise)[block_part]) const {
    auto const base = code::base(exponent);
    auto const encoded = [&](int j) { return code::encoded(__float_as_uint(values[j]), base, noise[j]); };
#pragma unroll
    for (int j = 0; j < block_part; j += 4) {
      codes[j / 4] = four_bytes<0>(encoded(j), encoded(j + 1), encoded(j + 2), encoded(j + 3));
    }
  }
};

/// The exponents of m and of v of this thread's block, from the largest magnitudes in its part. All threads
/// of a warp call it.
__device__ inline uint2 block_exponents(unsigned greatest_m, unsigned greatest_v) {
  constexpr int threads = static_cast<int>(kernel::state_block) / block_part;
  auto both = moment_part<kernel::moment::m>::code::exponent(greatest_m) |
              moment_part<kernel::moment::v>::code::exponent(greatest_v) << 16;
#pragma unroll
  for (int distance = threads / 2; distance > 0; distance /= 2) {
    both = __vmaxu2(both, __shfl_xor_sync(0xFFFFFFFFU, both, distance));
  }
  return {both & 0xFFFFU, both >> 16};
}

/// A thread's part of the array at `memory`, in words, which are read and written in large pieces where the
/// array is Aligned.
template <bool Aligned, class T, class Word, int Words>
__device__ __forceinline__ void fetch(T const* memory, Word (&words)[Words]) {
  static_assert(sizeof(words) == block_part * sizeof(T));
  using piece = std::conditional_t<Aligned, access<block_part, T>, T>;
  constexpr int pieces = static_cast<int>(sizeof(words) / sizeof(piece));
  piece buffer[pieces];
#pragma unroll
  for (int k = 0; k < pieces; ++k) { buffer[k] = reinterpret_cast<piece const*>(memory)[k]; }
  memcpy(words, buffer, sizeof(words));
}
template <bool Aligned, class T, class Word, int Words>
__device__ __forceinline__ void put(T* memory, Word const (&words)[Words]) {
  static_assert(sizeof(words) == block_part * sizeof(T));
  using piece = std::conditional_t<Aligned, access<block_part, T>, T>;
  constexpr int pieces = static_cast<int>(sizeof(words) / sizeof(piece));
  piece buffer[pieces];
  memcpy(buffer, words, sizeof(words));
#pragma unroll
  for (int k = 0; k < pieces; ++k) { reinterpret_cast<piece*>(memory)[k] = buffer[k]; }
}

/// A thread's part of a step.
template <class T, class G, bool Aligned>
struct adamw_part {
  static constexpr bool split = std::is_same_v<T, bfloat16>;
  static constexpr int n = block_part;
  using arguments = kernel::adamw<T, G, state_format::int8>;

  master_part<T> master;
  moment_part<kernel::moment::m> m;
  moment_part<kernel::moment::v> v;
  unsigned noise[n];

  /// Loads the elements from `i` on and updates them. Is what is here then right, if Number is usual_float?
  template <class Number>
  __device__ bool update(arguments const& a, std::int64_t i) {
    unsigned codes_of_m[n / 4], codes_of_v[n / 4], bits[n];
    G gradient[n];
    fetch<Aligned>(a.weight + i, master.weights);
    if constexpr (split) {
      fetch<Aligned>(a.low + i, master.low);
    }
    fetch<Aligned>(a.m.codes + i, codes_of_m);
    fetch<Aligned>(a.v.codes + i, codes_of_v);
    fetch<Aligned>(a.gradient + i, gradient);
    m.decode(codes_of_m, a.m.exponents[i / kernel::state_block]);
    v.decode(codes_of_v, a.v.exponents[i / kernel::state_block]);
    float masters[n];
#pragma unroll
    for (int j = 0; j < n; ++j) {
      masters[j] = updated<Number>(master.value(j), m.values[j], v.values[j],
                                   gradient_of<T, G>(widen(gradient[j])), a.step);
      noise[j] = kernel::noise_of(static_cast<unsigned>(a.index + i + j), a.step.noise);
      bits[j] = kernel::rounded_master<T, state_format::int8>(__float_as_uint(masters[j]), noise[j]);
    }
    master.assign(bits);
    return are_usual(masters, m.values, v.values, a.step);
  }

  /// With the exponents of the whole block.
  __device__ void store(arguments const& a, std::int64_t i, uint2 exponents) const {
    unsigned codes_of_m[n / 4], codes_of_v[n / 4];
    m.encode(codes_of_m, exponents.x, noise);
    v.encode(codes_of_v, exponents.y, noise);
    put<Aligned>(a.weight + i, master.weights);
    if constexpr (split) {
      put<Aligned>(a.low + i, master.low);
    }
    put<Aligned>(a.m.codes + i, codes_of_m);
    put<Aligned>(a.v.codes + i, codes_of_v);
    if (i % kernel::state_block == 0) {
      a.m.exponents[i / kernel::state_block] = static_cast<std::uint8_t>(exponents.x);
      a.v.exponents[i / kernel::state_block] = static_cast<std::uint8_t>(exponents.y);
    }
  }
};

template <class T, class G, bool Aligned>
__global__ void adamw_blocks_kernel(kernel::adamw<T, G, state_format::int8> a) {
  adamw_part<T, G, Aligned> own;
  auto const i = flat_index<block_part>();
  bool const any = i < a.count;  // whole blocks
  if (any && !own.template update<usual_float>(a, i)) {
    own.template update<exact_float>(a, i);
  }
  // A block's threads all have elements, or none.
  auto const exponents =
      block_exponents(any ? greatest_bits(own.m.values) : 0, any ? greatest_bits(own.v.values) : 0);
  if (any) {
    own.store(a, i, exponents);
  }
}

template <element T, element G>
void run(stream& on, kernel::adamw<T, G, state_format::int8> const& a) {
  bool const is_aligned = aligned<block_part>(a.weight) && aligned<block_part>(a.low) &&
                          aligned<block_part>(a.m.codes) && aligned<block_part>(a.v.codes) &&
                          aligned<block_part>(a.gradient);
  start(on, is_aligned ? adamw_blocks_kernel<T, G, true> : adamw_blocks_kernel<T, G, false>,
        flat_blocks<block_part>(a.count), flat_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
