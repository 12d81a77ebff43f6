// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/float8.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

using namespace superoffload;

namespace {

constexpr unsigned largest_pattern = 0x7E;

float8 of_pattern(unsigned pattern) { return float8::from_bits(static_cast<std::uint8_t>(pattern)); }

/// The value of a pattern, from the definition of the format: 4 bits of exponent with a bias of 7, 3 of
/// fraction.
double value_of(unsigned pattern) {
  int const exponent = static_cast<int>(pattern >> 3 & 15U);
  double const fraction = (pattern & 7U) / 8.0;
  double const magnitude = exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
  return (pattern & 0x80U) != 0U ? -magnitude : magnitude;
}

/// The pattern of the nearest finite number, by comparing all; ties go to the even pattern.
unsigned nearest(double value) {
  unsigned best = std::abs(value) > value_of(largest_pattern) ? largest_pattern : 0U;
  for (unsigned pattern = 0; best != largest_pattern && pattern <= largest_pattern; ++pattern) {
    double const distance = std::abs(value_of(pattern) - std::abs(value));
    double const least = std::abs(value_of(best) - std::abs(value));
    if (distance < least || (distance == least && pattern % 2 == 0)) {
      best = pattern;
    }
  }
  return best | (std::signbit(value) ? 0x80U : 0U);
}

}  // namespace

TEST_CASE("numbers of 8 bits have the values of their format") {
  for (unsigned pattern = 0; pattern < 256; ++pattern) {
    float const value = of_pattern(pattern);
    if ((pattern & 0x7FU) == 0x7FU) {
      CHECK(std::isnan(value));
    } else {
      CHECK(double{value} == value_of(pattern));
      CHECK(float8{value}.bits == pattern);
    }
  }
  CHECK(float{of_pattern(largest_pattern)} == float8::largest);
}

TEST_CASE("a float is rounded to the nearest number of 8 bits") {
  int wrong = 0;
  for (std::uint32_t high = 0; high < 0x10000U; ++high) {
    for (std::uint32_t const low : {0U, 1U, 0x8000U, 0xFFFFU}) {
      auto const value = std::bit_cast<float>(high << 16 | low);
      auto const rounded = float8{value};
      wrong += std::isnan(value)                ? (std::isnan(float{rounded}) ? 0 : 1)
               : rounded.bits == nearest(value) ? 0
                                                : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a scale is the largest power of 2 that keeps all numbers finite") {
  auto const of = [](float largest) { return float8_scale::of(std::bit_cast<std::uint32_t>(largest)); };
  for (int exponent = -149; exponent < 128; ++exponent) {
    for (float const fraction : {1.0F, 1.5F, 1.75F, 1.7500001F, 1.9999999F}) {
      float const largest = std::ldexp(fraction, exponent);
      if (largest == 0.0F || std::isinf(largest)) {
        continue;
      }
      auto const scale = of(largest);
      CAPTURE(largest);
      CHECK(scale.factor * scale.inverse == 1.0F);
      CHECK(scale.factor * largest <= float8::largest);
      CHECK((scale.factor * largest * 2.0F > float8::largest || scale.factor == 0x1p126F));
    }
  }
  CHECK(of(0.0F).factor == 0x1p126F);
  CHECK(std::isnan(of(std::numeric_limits<float>::infinity()).factor));
  CHECK(std::isnan(of(std::nanf("")).inverse));
}
