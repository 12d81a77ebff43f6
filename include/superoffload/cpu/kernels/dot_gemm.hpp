// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 matrices by the instruction that multiplies pairs of bfloat16 and adds them to a float
// (AVX-512 BF16): twice the rate of products of widened numbers. It rounds each product and sum to nearest,
// and takes subnormal numbers for zeros.
#pragma once

#include <superoffload/cpu/kernels/pair_panels.hpp>

#include <cstring>

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && !defined(__AMX_BF16__) && \
    !defined(SUPEROFFLOAD_KERNEL_SCALAR)
namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Rows and columns of c whose sums are kept in registers: 24 of 32.
inline constexpr int64_t dot_rows = 12, dot_columns = 32;

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
  static constexpr int64_t tile_rows = 192, tile_columns = 256, wanted_tiles = 64;
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
