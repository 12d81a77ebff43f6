// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/mxfp4.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace superoffload::io {
namespace detail {

/// The sixteen four-bit values, for every scale.
SUPEROFFLOAD_INLINE std::vector<std::array<bfloat16, 16>> scaled_values() {
  constexpr std::array magnitudes{0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  std::vector<std::array<bfloat16, 16>> values(256);
  for (int scale = 0; scale < 256; ++scale) {
    for (std::size_t i = 0; i < 8; ++i) {
      auto const value = bfloat16{std::ldexp(magnitudes[i], scale - 127)};
      values[static_cast<std::size_t>(scale)][i] = value;
      values[static_cast<std::size_t>(scale)][i + 8] =
          bfloat16::from_bits(static_cast<std::uint16_t>(value.bits | 0x8000U));
    }
  }
  return values;
}

}  // namespace detail

SUPEROFFLOAD_INLINE void dequantise_mxfp4(std::span<std::byte const> blocks,
                                          std::span<std::byte const> scales, std::int64_t in,
                                          std::int64_t out, std::span<bfloat16> to) {
  static auto const values = detail::scaled_values();
  auto const groups = in / mxfp4_block;
  expect(in % mxfp4_block == 0 && std::ssize(scales) == out * groups &&
             std::ssize(blocks) == out * groups * mxfp4_block_bytes && std::ssize(to) == in * out,
         exit_code::internal, "blocks, scales and result of MXFP4 do not fit together");
  constexpr std::int64_t some = 64;  // outputs at a time: writes whole cache lines
  for (std::int64_t first = 0; first < out; first += some) {
    auto const last = std::min(first + some, out);
    for (std::int64_t group = 0; group < groups; ++group) {
      for (auto o = first; o < last; ++o) {
        auto const at = o * groups + group;
        auto const& scaled = values[std::to_integer<std::size_t>(scales[static_cast<std::size_t>(at)])];
        auto const* const block = blocks.data() + at * mxfp4_block_bytes;
        auto* const column = to.data() + group * mxfp4_block * out + o;
        for (std::int64_t b = 0; b < mxfp4_block_bytes; ++b) {
          auto const pair = std::to_integer<std::size_t>(block[b]);
          column[2 * b * out] = scaled[pair & 15U];
          column[(2 * b + 1) * out] = scaled[pair >> 4U];
        }
      }
    }
  }
}

}  // namespace superoffload::io
