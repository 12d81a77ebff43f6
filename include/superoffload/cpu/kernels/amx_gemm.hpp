// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 matrices by the processor's matrix unit (AMX), several times as fast as by AVX-512
// BF16. It rounds each product and sum to nearest and takes subnormal numbers for zeros. Of every 32 places
// in depth it sums the even and the odd ones apart.
#pragma once

#include <superoffload/cpu/kernels/pair_panels.hpp>

#include <cstring>

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__AVX512BW__) && \
    !defined(SUPEROFFLOAD_KERNEL_SCALAR)
namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// A tile of the unit: lines of 64 bytes, which are 16 floats, pairs, or 32 bfloat16.
inline constexpr int64_t tile_lines = 16, tile_words = 16, tile_depth = 32;

/// The unit's eight tiles, of this thread, all of the full size.
class amx_tiles {
public:
  amx_tiles() {
    struct alignas(64) {
      std::uint8_t palette = 1, first_line = 0, reserved[14] = {};
      std::uint16_t line_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const configuration;
    _tile_loadconfig(&configuration);
  }
  ~amx_tiles() { _tile_release(); }
  amx_tiles(amx_tiles const&) = delete;
  amx_tiles& operator=(amx_tiles const&) = delete;

  /// c [32, 32] (+)= a b, of `depth` places, a multiple of 32. a has tiles, in turn of its upper and lower
  /// lines; b has lines of 32 pairs; lines of c are c_stride floats apart.
  [[gnu::always_inline]] static void multiply(bfloat16 const* a, bfloat16_pair const* b, int64_t depth,
                                              float* c, int64_t c_stride, bool accumulate) {
    auto const c_bytes = c_stride * static_cast<int64_t>(sizeof(float));
    auto* const lower = c + tile_lines * c_stride;
    // g++ does not know that these instructions read and write memory.
    asm volatile("" ::: "memory");
    if (accumulate) {
      _tile_loadd(0, c, c_bytes);
      _tile_loadd(1, c + tile_words, c_bytes);
      _tile_loadd(2, lower, c_bytes);
      _tile_loadd(3, lower + tile_words, c_bytes);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    constexpr int64_t b_stride = 2 * tile_words * sizeof(bfloat16_pair);
    for (int64_t k = 0; k < depth; k += tile_depth) {
      auto const* const upper_lines = a + 2 * tile_lines * k;
      auto const* const left = b + k * tile_words;
      _tile_loadd(6, left, b_stride);
      _tile_loadd(4, upper_lines, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, left + tile_words, b_stride);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, upper_lines + tile_lines * tile_depth, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, c_bytes);
    _tile_stored(1, c + tile_words, c_bytes);
    _tile_stored(2, lower, c_bytes);
    _tile_stored(3, lower + tile_words, c_bytes);
    asm volatile("" ::: "memory");
  }
};

/// c has room for whole blocks of 32 x 32; what lies beyond the product is overwritten.
template <>
class tile_product<bfloat16> {
public:
  static constexpr int64_t row_grid = 2 * tile_lines, column_grid = 2 * tile_words;
  static constexpr int64_t tile_rows = 256, tile_columns = 512, wanted_tiles = 16;
  static constexpr int64_t depth_of(int64_t k) { return k > 1024 ? 1024 : k; }
  static constexpr std::size_t scratch_bytes(int64_t, int64_t columns, int64_t depth) {
    return arrays::bytes_of(whole(columns, column_grid) * pairs_of(depth), sizeof(bfloat16_pair)) +
           arrays::bytes_of(row_grid * whole(depth, tile_depth), sizeof(bfloat16)) +
           arrays::bytes_of(row_grid * pairs_of(depth), sizeof(bfloat16_pair));
  }

  tile_product(arrays& scratch, int64_t, int64_t columns, int64_t depth)
      : b_{scratch.take<bfloat16_pair>(whole(columns, column_grid) * pairs_of(depth))},
        a_{scratch.take<bfloat16>(row_grid * whole(depth, tile_depth))},
        pairs_{scratch.take<bfloat16_pair>(row_grid * pairs_of(depth))} {}

  void operator()(operand<bfloat16> const& a, operand<bfloat16> const& b, float* c, int64_t c_stride,
                  bool accumulate) const {
    auto const depth = whole(a.columns, tile_depth);
    for (int64_t first = 0; first < b.columns; first += column_grid) {
      pack_whole<column_grid, true>(b, first, least(b.columns - first, column_grid), depth,
                                    b_ + first * depth / 2);
    }
    amx_tiles const unit;
    for (int64_t row = 0; row < a.rows; row += row_grid) {
      auto const count = least(a.rows - row, row_grid);
      pack_lines(a, row, count, depth);
      for (int64_t column = 0; column < b.columns; column += column_grid) {
        unit.multiply(a_, b_ + column * depth / 2, depth, c + row * c_stride + column, c_stride, accumulate);
      }
    }
  }

private:
  static constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  static constexpr int64_t whole(int64_t count, int64_t grid) { return pieces_of(count, grid) * grid; }
  static constexpr int64_t pairs_of(int64_t depth) { return whole(depth, tile_depth) / 2; }

  /// pack_pairs, with zeros up to `depth`.
  template <int64_t Width, bool by_columns>
  static void pack_whole(operand<bfloat16> const& m, int64_t line, int64_t count, int64_t depth,
                         bfloat16_pair* to) {
    pack_pairs<Width, by_columns>(m, line, count, to);
    auto const filled = ((by_columns ? m.rows : m.columns) + 1) / 2 * Width;
    std::memset(to + filled, 0, static_cast<std::size_t>(depth / 2 * Width - filled) * sizeof(*to));
  }

  /// a_ = `count` lines of a, and zeros, in tiles.
  void pack_lines(operand<bfloat16> const& a, int64_t row, int64_t count, int64_t depth) const {
    if (a.transposed) {
      pack_whole<row_grid, false>(a, row, count, depth, pairs_);
    }
    auto* to = a_;
    for (int64_t k = 0; k < depth; k += tile_depth) {
      auto const left = a.columns - k;
      auto const mask = static_cast<__mmask32>(left < tile_depth ? (1U << left) - 1 : ~0U);
      for (int64_t half = 0; half < row_grid; half += tile_lines) {
        __m512i line[tile_lines];
        if (a.transposed) {
          auto const* const pairs = pairs_ + k / 2 * row_grid + half;
          transpose_words(reinterpret_cast<std::byte const*>(pairs), row_grid * sizeof(bfloat16_pair), line);
        } else {
          for (int64_t i = 0; i < tile_lines; ++i) {
            line[i] = half + i < count ? _mm512_maskz_loadu_epi16(mask, a.at(row + half + i, k))
                                       : _mm512_setzero_si512();
          }
        }
        for (auto const& words : line) {
          _mm512_store_si512(to, words);
          to += tile_depth;
        }
      }
    }
  }

  bfloat16_pair* b_;      // panels of [depth / 2][32]
  bfloat16* a_;           // [depth / 32][2][16][32]
  bfloat16_pair* pairs_;  // [depth / 2][32]
};

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
#endif
