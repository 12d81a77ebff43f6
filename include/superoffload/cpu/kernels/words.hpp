// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Vectors of 32-bit words, as many as vector<float> has lanes: the bits of floats.
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/stored_state.hpp>

#include <bit>
#include <cstdint>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

#if defined(SUPEROFFLOAD_KERNEL_SCALAR)
using words = std::uint32_t;
using kernel::greater;
using kernel::lesser;
using kernel::unless_zero;

inline words bits_of(vector<float> x) { return std::bit_cast<words>(x.value); }
inline vector<float> floats_of(words x) { return std::bit_cast<float>(x); }
/// first, first + 1, ...
inline words counted_from(std::uint32_t first) { return first; }
inline std::uint32_t greatest_of_lanes(words x) { return x; }

inline words load_words(std::uint8_t const* from) { return *from; }
inline words load_signed_words(std::int8_t const* from) { return static_cast<words>(std::int32_t{*from}); }
inline void store_words(std::uint8_t* to, words x) { *to = static_cast<std::uint8_t>(x); }
inline void store_words(std::uint16_t* to, words x) { *to = static_cast<std::uint16_t>(x); }

#elif defined(__AVX512F__)
struct words {
  __m512i value;

  words() = default;
  explicit words(__m512i x) : value{x} {}
  explicit words(std::uint32_t x) : value{_mm512_set1_epi32(static_cast<int>(x))} {}

  friend words operator+(words a, words b) { return words{_mm512_add_epi32(a.value, b.value)}; }
  friend words operator-(words a, words b) { return words{_mm512_sub_epi32(a.value, b.value)}; }
  friend words operator*(words a, words b) { return words{_mm512_mullo_epi32(a.value, b.value)}; }
  friend words operator&(words a, words b) { return words{_mm512_and_si512(a.value, b.value)}; }
  friend words operator|(words a, words b) { return words{_mm512_or_si512(a.value, b.value)}; }
  friend words operator^(words a, words b) { return words{_mm512_xor_si512(a.value, b.value)}; }
  friend words operator<<(words a, int n) {
    return words{_mm512_slli_epi32(a.value, static_cast<unsigned>(n))};
  }
  friend words operator>>(words a, int n) {
    return words{_mm512_srli_epi32(a.value, static_cast<unsigned>(n))};
  }
  friend words lesser(words a, words b) { return words{_mm512_min_epu32(a.value, b.value)}; }
  friend words greater(words a, words b) { return words{_mm512_max_epu32(a.value, b.value)}; }
  friend words unless_zero(words test, words x) {
    return words{_mm512_maskz_mov_epi32(_mm512_test_epi32_mask(test.value, test.value), x.value)};
  }
};

inline words bits_of(vector<float> x) { return words{_mm512_castps_si512(x)}; }
inline vector<float> floats_of(words x) { return _mm512_castsi512_ps(x.value); }
inline words counted_from(std::uint32_t first) {
  auto const lanes_in_order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return words{first} + words{lanes_in_order};
}
inline std::uint32_t greatest_of_lanes(words x) { return _mm512_reduce_max_epu32(x.value); }

inline words load_words(std::uint8_t const* from) {
  return words{_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from)))};
}
inline words load_signed_words(std::int8_t const* from) {
  return words{_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from)))};
}
/// The low bits of each word.
inline void store_words(std::uint8_t* to, words x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(x.value));
}
inline void store_words(std::uint16_t* to, words x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(x.value));
}

#elif defined(__AVX2__)
struct words {
  __m256i value;

  words() = default;
  explicit words(__m256i x) : value{x} {}
  explicit words(std::uint32_t x) : value{_mm256_set1_epi32(static_cast<int>(x))} {}

  friend words operator+(words a, words b) { return words{_mm256_add_epi32(a.value, b.value)}; }
  friend words operator-(words a, words b) { return words{_mm256_sub_epi32(a.value, b.value)}; }
  friend words operator*(words a, words b) { return words{_mm256_mullo_epi32(a.value, b.value)}; }
  friend words operator&(words a, words b) { return words{_mm256_and_si256(a.value, b.value)}; }
  friend words operator|(words a, words b) { return words{_mm256_or_si256(a.value, b.value)}; }
  friend words operator^(words a, words b) { return words{_mm256_xor_si256(a.value, b.value)}; }
  friend words operator<<(words a, int n) { return words{_mm256_slli_epi32(a.value, n)}; }
  friend words operator>>(words a, int n) { return words{_mm256_srli_epi32(a.value, n)}; }
  friend words lesser(words a, words b) { return words{_mm256_min_epu32(a.value, b.value)}; }
  friend words greater(words a, words b) { return words{_mm256_max_epu32(a.value, b.value)}; }
  friend words unless_zero(words test, words x) {
    return words{_mm256_andnot_si256(_mm256_cmpeq_epi32(test.value, _mm256_setzero_si256()), x.value)};
  }
};

inline words bits_of(vector<float> x) { return words{_mm256_castps_si256(x)}; }
inline vector<float> floats_of(words x) { return _mm256_castsi256_ps(x.value); }
inline words counted_from(std::uint32_t first) {
  return words{first} + words{_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)};
}
inline std::uint32_t greatest_of_lanes(words x) {
  auto four = _mm_max_epu32(_mm256_castsi256_si128(x.value), _mm256_extracti128_si256(x.value, 1));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(four));
}

inline words load_words(std::uint8_t const* from) {
  return words{_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(from)))};
}
inline words load_signed_words(std::int8_t const* from) {
  return words{_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(from)))};
}
/// The words as halves; each is below 2^16.
inline __m128i halves_of(__m256i x) {
  return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}
/// The low bits of each word.
inline void store_words(std::uint8_t* to, words x) {
  auto const halves = halves_of((x & words{0xFFU}).value);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(halves, halves));
}
inline void store_words(std::uint16_t* to, words x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves_of((x & words{0xFFFFU}).value));
}

#else  // NEON
struct words {
  uint32x4_t value;

  words() = default;
  explicit words(uint32x4_t x) : value{x} {}
  explicit words(std::uint32_t x) : value{vdupq_n_u32(x)} {}

  friend words operator+(words a, words b) { return words{vaddq_u32(a.value, b.value)}; }
  friend words operator-(words a, words b) { return words{vsubq_u32(a.value, b.value)}; }
  friend words operator*(words a, words b) { return words{vmulq_u32(a.value, b.value)}; }
  friend words operator&(words a, words b) { return words{vandq_u32(a.value, b.value)}; }
  friend words operator|(words a, words b) { return words{vorrq_u32(a.value, b.value)}; }
  friend words operator^(words a, words b) { return words{veorq_u32(a.value, b.value)}; }
  friend words operator<<(words a, int n) { return words{vshlq_u32(a.value, vdupq_n_s32(n))}; }
  friend words operator>>(words a, int n) { return words{vshlq_u32(a.value, vdupq_n_s32(-n))}; }
  friend words lesser(words a, words b) { return words{vminq_u32(a.value, b.value)}; }
  friend words greater(words a, words b) { return words{vmaxq_u32(a.value, b.value)}; }
  friend words unless_zero(words test, words x) {
    return words{vandq_u32(vtstq_u32(test.value, test.value), x.value)};
  }
};

inline words bits_of(vector<float> x) { return words{vreinterpretq_u32_f32(x)}; }
inline vector<float> floats_of(words x) { return vreinterpretq_f32_u32(x.value); }
inline words counted_from(std::uint32_t first) {
  std::uint32_t const lanes_in_order[] = {0, 1, 2, 3};
  return words{first} + words{vld1q_u32(lanes_in_order)};
}
inline std::uint32_t greatest_of_lanes(words x) { return vmaxvq_u32(x.value); }

inline words load_words(std::uint8_t const* from) {
  std::uint8_t bytes[8]{};
  for (int i = 0; i < 4; ++i) { bytes[i] = from[i]; }
  return words{vmovl_u16(vget_low_u16(vmovl_u8(vld1_u8(bytes))))};
}
inline words load_signed_words(std::int8_t const* from) {
  std::int8_t bytes[8]{};
  for (int i = 0; i < 4; ++i) { bytes[i] = from[i]; }
  return words{vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(bytes)))))};
}
/// The low bits of each word.
inline void store_words(std::uint16_t* to, words x) { vst1_u16(to, vmovn_u32(x.value)); }
inline void store_words(std::uint8_t* to, words x) {
  auto const halves = vmovn_u32(x.value);
  std::uint8_t bytes[8];
  vst1_u8(bytes, vmovn_u16(vcombine_u16(halves, halves)));
  for (int i = 0; i < 4; ++i) { to[i] = bytes[i]; }
}
#endif

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
