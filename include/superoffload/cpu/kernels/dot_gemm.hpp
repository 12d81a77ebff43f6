// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 matrices by the instruction that multiplies pairs of bfloat16 and adds them to a float
// (AVX-512 BF16): twice the rate of products of widened numbers. It rounds each product and sum to nearest,
// and takes subnormal numbers for zeros.
#pragma once

#include <superoffload/cpu/kernels/tile_gemm.hpp>

#include <cstring>

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Rows and columns of c whose sums are kept in registers: 24 of 32.
inline constexpr int64_t dot_rows = 12, dot_columns = 32;

/// Two neighbours in depth, as the instruction takes them.
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

/// c [dot_rows, dot_columns] (+)= the dot products of `pairs` pairs. Row i of a is at a + i * row_step, its
/// next pair pair_step further, both in bytes; b is packed.
[[gnu::always_inline]] inline void dot_block(std::byte const* a, int64_t row_step, int64_t pair_step,
                                             bfloat16_pair const* b, int64_t pairs, float* c,
                                             int64_t c_stride, bool accumulate) {
  constexpr int rows = static_cast<int>(dot_rows);
  __m512 sums[rows][2];
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i) {
    sums[i][0] = accumulate ? _mm512_loadu_ps(c + i * c_stride) : _mm512_setzero_ps();
    sums[i][1] = accumulate ? _mm512_loadu_ps(c + i * c_stride + 16) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < pairs; ++k) {
    auto const left = (__m512bh)_mm512_load_si512(b + k * dot_columns);
    auto const right = (__m512bh)_mm512_load_si512(b + k * dot_columns + 16);
#pragma GCC unroll 12
    for (int i = 0; i < rows; ++i) {
      bfloat16_pair pair;
      std::memcpy(&pair, a + i * row_step, sizeof pair);
      auto const all = (__m512bh)_mm512_set1_epi32(pair);
      sums[i][0] = _mm512_dpbf16_ps(sums[i][0], all, left);
      sums[i][1] = _mm512_dpbf16_ps(sums[i][1], all, right);
    }
    a += pair_step;
  }
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i) {
    _mm512_storeu_ps(c + i * c_stride, sums[i][0]);
    _mm512_storeu_ps(c + i * c_stride + 16, sums[i][1]);
  }
}

/// c has room for whole blocks of dot_rows x dot_columns; what lies beyond the product is overwritten.
template <>
class tile_product<bfloat16> {
public:
  static constexpr int64_t row_grid = dot_rows, column_grid = dot_columns;
  static constexpr int64_t depth_of(int64_t k) { return k > 512 ? 512 : k; }
  static constexpr std::size_t scratch_bytes(int64_t, int64_t columns, int64_t depth) {
    return arrays::bytes_of(pairs_of(depth) * (whole_panels(columns) + dot_rows), sizeof(bfloat16_pair));
  }

  tile_product(arrays& scratch, int64_t, int64_t columns, int64_t depth)
      : b_{scratch.take<bfloat16_pair>(pairs_of(depth) * (whole_panels(columns) + dot_rows))},
        a_{b_ + pairs_of(depth) * whole_panels(columns)} {}

  void operator()(operand<bfloat16> const& a, operand<bfloat16> const& b, float* c, int64_t c_stride,
                  bool accumulate) const {
    auto const pairs = pairs_of(a.columns);
    for (int64_t first = 0; first < b.columns; first += dot_columns) {
      auto const count = b.columns - first < dot_columns ? b.columns - first : dot_columns;
      pack_pairs<dot_columns, true>(b, first, count, b_ + first * pairs);
    }
    for (int64_t row = 0; row < a.rows; row += dot_rows) {
      auto const count = a.rows - row < dot_rows ? a.rows - row : dot_rows;
      bool const in_place = !a.transposed && count == dot_rows && a.columns % 2 == 0;
      if (!in_place) {
        pack_pairs<dot_rows, false>(a, row, count, a_);
      }
      auto const* const from =
          reinterpret_cast<std::byte const*>(in_place ? static_cast<void const*>(a.at(row, 0)) : a_);
      constexpr auto pair = static_cast<int64_t>(sizeof(bfloat16_pair));
      auto const row_step = in_place ? a.stride * static_cast<int64_t>(sizeof(bfloat16)) : pair;
      auto const pair_step = in_place ? pair : pair * dot_rows;
      for (int64_t column = 0; column < b.columns; column += dot_columns) {
        dot_block(from, row_step, pair_step, b_ + column * pairs, pairs, c + row * c_stride + column,
                  c_stride, accumulate);
      }
    }
  }

private:
  static constexpr int64_t pairs_of(int64_t depth) { return (depth + 1) / 2; }
  static constexpr int64_t whole_panels(int64_t columns) {
    return pieces_of(columns, dot_columns) * dot_columns;
  }

  bfloat16_pair* b_;  // panels of [pairs][dot_columns]
  bfloat16_pair* a_;  // [pairs][dot_rows]
};

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
#endif
