// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace superoffload {

/// A number of 8 bits in the format E4M3: a sign, 4 bits of exponent, 3 of fraction (Micikevicius et al.,
/// arXiv 2209.05433). Its largest finite number is 448, its least positive one 2^-9; it has no infinity, and
/// the patterns 0x7F and 0xFF are NaN. Storage only; arithmetic widens to float.
struct float8 {
  std::uint8_t bits = 0;  ///< the pattern

  constexpr float8() = default;
  /// Rounds to nearest, ties to even. Larger numbers, and infinity, become the largest finite one; NaN stays
  /// NaN.
  constexpr explicit float8(float value) : bits{rounded(value)} {}
  /// Exact.
  constexpr operator float() const {
    std::uint32_t const sign = (bits & 0x80U) << 24, magnitude = bits & 0x7FU;
    if (magnitude == 0x7FU) {
      return std::bit_cast<float>(sign | 0x7FC00000U);
    }
    if (magnitude >= 8U) {
      return std::bit_cast<float>(sign | ((magnitude << shift) + (rebias << 23)));
    }
    auto const subnormal = static_cast<float>(magnitude) * 0x1p-9F;
    return sign != 0U ? -subnormal : subnormal;
  }

  /// The number with this bit pattern.
  static constexpr float8 from_bits(std::uint8_t pattern) {
    float8 number;
    number.bits = pattern;
    return number;
  }
  static constexpr float largest = 448.0F;  ///< finite number

private:
  static constexpr int shift = 20;               // of the fraction, from its place in a float
  static constexpr std::uint32_t rebias = 120U;  // the bias of a float's exponent less that of this format

  static constexpr std::uint8_t rounded(float value) {
    auto const pattern = std::bit_cast<std::uint32_t>(value);
    auto const sign = static_cast<std::uint8_t>(pattern >> 24 & 0x80U);
    auto const magnitude = pattern & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) {
      return sign | 0x7FU;
    }
    if (magnitude >= std::bit_cast<std::uint32_t>(largest)) {
      return sign | 0x7EU;
    }
    if (magnitude < (rebias + 1U) << 23) {  // subnormal: the sum rounds at its last bit, which is 2^-9
      auto const sum = std::bit_cast<float>(magnitude) + 0x1p14F;
      return sign | static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(sum) & 0xFFU);
    }
    auto const to_even = magnitude + ((1U << (shift - 1)) - 1U) + (magnitude >> shift & 1U);
    return sign | static_cast<std::uint8_t>((to_even - (rebias << 23)) >> shift);
  }
};
static_assert(sizeof(float8) == 1);

/// The factor by which numbers are multiplied before they are rounded to float8, and its inverse.
struct float8_scale {
  float factor,  ///< a power of 2, so it rounds nothing itself
      inverse;   ///< exact

  /// For numbers whose largest magnitude has the pattern `largest` as a float: the largest power of 2, up to
  /// 2^126, with which that stays finite in float8. Both are NaN if a number is infinite or NaN, so that all
  /// results are.
  static constexpr float8_scale of(std::uint32_t largest) {
    if (largest >= 0x7F800000U) {
      auto const nan = std::bit_cast<float>(0x7FC00000U);
      return {nan, nan};
    }
    constexpr auto limit = std::bit_cast<std::uint32_t>(float8::largest);
    constexpr std::uint32_t fraction = 0x7FFFFFU, most = 253U;
    auto const beyond = (largest & fraction) > (limit & fraction) ? 1U : 0U;
    auto const exponent = 127U + (limit >> 23) - (largest >> 23) - beyond;
    auto const of_factor = exponent > most ? most : exponent;
    return {std::bit_cast<float>(of_factor << 23), std::bit_cast<float>((254U - of_factor) << 23)};
  }
};

}  // namespace superoffload
