// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/dtype.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <random>

using namespace superoffload;

namespace {
float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
bfloat16 from_half(std::uint16_t bits) { return bfloat16::from_bits(bits); }

/// The bfloat16 nearest to `value`, by comparing distances in double; ties go to the even pattern.
std::uint16_t nearest(float value) {
  auto const below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);  // towards zero
  auto const beyond = static_cast<std::uint16_t>(below + 1);
  double const wanted = value;
  double const low = float{from_half(below)};
  // The step after the largest finite number is as long as the one before it.
  double const high = std::isinf(float{from_half(beyond)}) ? std::copysign(std::ldexp(1.0, 128), wanted)
                                                           : double{float{from_half(beyond)}};
  double const to_low = std::abs(wanted - low);
  double const to_high = std::abs(high - wanted);
  return to_low < to_high || (to_low == to_high && below % 2 == 0) ? below : beyond;
}
}  // namespace

TEST_CASE("every bfloat16 survives widening and rounding") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    auto const number = from_half(static_cast<std::uint16_t>(bits));
    float const wide_number = number;
    if (std::isnan(wide_number)) {
      // Quiet, or made quiet; sign and payload are kept.
      wrong += bfloat16{wide_number}.bits != (bits | 0x40U);
    } else {
      wrong += std::bit_cast<std::uint32_t>(wide_number) != bits << 16 || bfloat16{wide_number}.bits != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("rounding goes to the nearest, ties to even") {
  int wrong = 0;
  // Around every bfloat16: on it, just beside it, and just beside and on the midpoint to the next.
  for (std::uint32_t high = 0; high < 0x10000U; ++high) {
    for (std::uint32_t const low : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      float const value = from_bits(high << 16 | low);
      if (std::isfinite(value)) {
        wrong += bfloat16{value}.bits != nearest(value);
      }
    }
  }
  std::mt19937 random{1};
  for (int i = 0; i < 1'000'000; ++i) {
    float const value = from_bits(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) {
      wrong += bfloat16{value}.bits != nearest(value);
    }
  }
  CHECK(wrong == 0);
  CHECK(bfloat16{1.00390625F}.bits == 0x3F80U);  // 1 + 2^-8, the midpoint, down to even
  CHECK(bfloat16{1.01171875F}.bits == 0x3F82U);  // 1 + 3 * 2^-8, the midpoint, up to even
  CHECK(bfloat16{std::numeric_limits<float>::max()}.bits == 0x7F80U);
}

TEST_CASE("no NaN becomes a number or an infinity") {
  for (std::uint32_t const bits :
       {0x7F800001U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU, 0x7FC00000U, 0x7F808000U}) {
    CHECK(std::isnan(float{bfloat16{from_bits(bits)}}));
  }
}

TEST_CASE("a working weight and the low half of its master restore the master") {
  auto const restored = [](std::uint32_t bits) {
    float const master = from_bits(bits);
    return std::bit_cast<std::uint32_t>(
        bfloat16::master_of(bfloat16::of_master(master), bfloat16::low_of_master(master)));
  };
  // The upper half depends only on the top bit of the lower half. So all upper halves with lower halves on
  // both sides of that bit cover every case.
  int wrong = 0;
  for (std::uint32_t high = 0; high < 0x10000U; ++high) {
    for (std::uint32_t const low : {0x0000U, 0x0001U, 0x1234U, 0x7FFFU, 0x8000U, 0x8001U, 0xABCDU, 0xFFFFU}) {
      std::uint32_t const bits = high << 16 | low;
      wrong += restored(bits) != bits;
      if ((bits & 0x7FFFFFFFU) < 0x7F7F8000U) {
        wrong += !std::isfinite(float{bfloat16::of_master(from_bits(bits))});
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a working weight is its master rounded half away from zero") {
  CHECK(bfloat16::of_master(1.0F).bits == 0x3F80U);
  CHECK(bfloat16::of_master(1.00390625F).bits ==
        0x3F81U);  // the midpoint: away from zero, where rounding to even would stay
  CHECK(bfloat16::of_master(-1.00390625F).bits == 0xBF81U);
  CHECK(bfloat16::of_master(from_bits(0x3F807FFFU)).bits == 0x3F80U);
  CHECK(bfloat16::of_master(from_bits(0x7F7F7FFFU)).bits == 0x7F7FU);  // the largest it is defined for
  CHECK(bfloat16::of_master(-0.0F).bits == 0x8000U);
}

TEST_CASE("every float16 widens to the same number") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    float const actual = float16{static_cast<std::uint16_t>(bits)};
    auto const exponent = static_cast<int>(bits >> 10 & 31U);
    auto const fraction = static_cast<double>(bits & 1023U);
    double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) {
      expected = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
    }
    bool const negative = (bits & 0x8000U) != 0;
    wrong += std::signbit(actual) != negative;
    wrong += std::isnan(expected) ? !std::isnan(actual) : std::abs(double{actual}) != expected;
  }
  CHECK(wrong == 0);
}

TEST_CASE("types know their size, their name and their sums") {
  CHECK(size_of(dtype::f64) == 8);
  CHECK(size_of(dtype::f32) == 4);
  CHECK(size_of(dtype::bf16) == 2);
  CHECK(size_of(dtype::f16) == 2);
  CHECK(size_of(dtype::u8) == 1);
  CHECK(name_of(dtype::f64) == "F64");
  CHECK(name_of(dtype::f32) == "F32");
  CHECK(name_of(dtype::bf16) == "BF16");
  CHECK(name_of(dtype::f16) == "F16");
  CHECK(name_of(dtype::u8) == "U8");
  CHECK(dtype_of<bfloat16> == dtype::bf16);
  CHECK(dtype_of<float> == dtype::f32);
  CHECK(dtype_of<double> == dtype::f64);
  CHECK(std::same_as<wide<bfloat16>, float>);
  CHECK(std::same_as<wide<float>, float>);
  CHECK(std::same_as<wide<double>, double>);
  CHECK_FALSE(element<float16>);
  CHECK_FALSE(element<int>);
}

TEST_CASE("bfloat16 compares like its number") {
  CHECK(bfloat16{0.0F} == bfloat16{-0.0F});
  CHECK_FALSE(from_half(0x7FC0U) == from_half(0x7FC0U));
  CHECK(bfloat16{2.0F} == from_half(0x4000U));
}
