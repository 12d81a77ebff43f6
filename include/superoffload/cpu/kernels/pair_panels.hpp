// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Panels of pairs of bfloat16, as the instructions take them that multiply pairs and add them to a float.
#pragma once

#include <superoffload/cpu/kernels/tile_gemm.hpp>

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Two neighbours in depth, as the instructions take them.
using bfloat16_pair = std::int32_t;

/// 16 words of each of 16 lines, `stride` bytes apart, transposed: to[i] has word i of every line.
[[gnu::always_inline]] inline void transpose_words(std::byte const* from, int64_t stride, __m512i (&to)[16]) {
  __m512i line[16], pairs[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) { line[i] = _mm512_loadu_si512(from + i * stride); }
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(line[i], line[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(line[i], line[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    line[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    line[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    line[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    line[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  // line[4 q + j] has words j, 4 + j, 8 + j, 12 + j of lines 4 q to 4 q + 3.
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    auto const a = _mm512_shuffle_i32x4(line[j], line[4 + j], 0x88);
    auto const b = _mm512_shuffle_i32x4(line[8 + j], line[12 + j], 0x88);
    auto const c = _mm512_shuffle_i32x4(line[j], line[4 + j], 0xDD);
    auto const d = _mm512_shuffle_i32x4(line[8 + j], line[12 + j], 0xDD);
    to[j] = _mm512_shuffle_i32x4(a, b, 0x88);
    to[8 + j] = _mm512_shuffle_i32x4(a, b, 0xDD);
    to[4 + j] = _mm512_shuffle_i32x4(c, d, 0x88);
    to[12 + j] = _mm512_shuffle_i32x4(c, d, 0xDD);
  }
}

/// Writes the pairs of `count` lines of m, at most `Width`, which are its rows or, with `by_columns`, its
/// columns: [depth pairs][Width], with zeros beyond the lines and the depth.
template <int64_t Width, bool by_columns>
void pack_pairs(operand<bfloat16> const& m, int64_t line, int64_t count, bfloat16_pair* to) {
  auto const depth = by_columns ? m.rows : m.columns;
  auto const pairs = (depth + 1) / 2;
  auto const at = [&](int64_t i, int64_t k) { return by_columns ? m.at(k, line + i) : m.at(line + i, k); };
  bool const deep = m.transposed == by_columns;  // is a line contiguous?
  if (!deep && count == Width && depth % 2 == 0) {
    auto const lower = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                                        38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    auto const upper = _mm512_add_epi16(lower, _mm512_set1_epi16(16));
    constexpr auto mask = static_cast<__mmask32>((std::uint64_t{1} << Width) - 1);
    for (int64_t k = 0; k < pairs; ++k) {
      auto const even = _mm512_maskz_loadu_epi16(mask, at(0, 2 * k));
      auto const odd = _mm512_maskz_loadu_epi16(mask, at(0, 2 * k + 1));
      auto const low = _mm512_permutex2var_epi16(even, lower, odd);
      if constexpr (Width == 32) {
        _mm512_store_si512(to + k * Width, low);
        _mm512_store_si512(to + k * Width + 16, _mm512_permutex2var_epi16(even, upper, odd));
      } else {
        static_assert(Width <= 16);
        _mm512_mask_storeu_epi32(to + k * Width, static_cast<__mmask16>((1U << Width) - 1), low);
      }
    }
    return;
  }
  int64_t done = 0;
  if constexpr (Width % 16 == 0) {
    if (deep && count == Width) {
      for (; 2 * (done + 16) <= depth; done += 16) {
        for (int64_t i = 0; i < Width; i += 16) {
          __m512i transposed[16];
          transpose_words(reinterpret_cast<std::byte const*>(at(i, 2 * done)),
                          m.stride * static_cast<int64_t>(sizeof(bfloat16)), transposed);
#pragma GCC unroll 16
          for (int j = 0; j < 16; ++j) { _mm512_store_si512(to + (done + j) * Width + i, transposed[j]); }
        }
      }
    }
  }
  for (; done < pairs; ++done) {
    for (int64_t i = 0; i < Width; ++i) {
      std::uint32_t pair = 0;
      if (i < count) {
        pair = at(i, 2 * done)->bits;
        if (2 * done + 1 < depth) {
          pair |= std::uint32_t{at(i, 2 * done + 1)->bits} << 16;
        }
      }
      to[done * Width + i] = static_cast<bfloat16_pair>(pair);
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
#endif
