// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/kernel/stored_state.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace {

using namespace superoffload;
using kernel::moment;
using kernel::moment_code;

constexpr std::uint32_t word(float x) { return std::bit_cast<std::uint32_t>(x); }
constexpr float value(std::uint32_t bits) { return std::bit_cast<float>(bits); }

template <moment Of>
using int8_code = moment_code<state_format::int8, Of>;

/// The mean of x over all values of the noise's 16 bits.
template <class Rounded>
double mean_of(Rounded const& rounded) {
  double sum = 0.0;
  for (std::uint32_t noise = 0; noise < 65536; ++noise) { sum += rounded(noise << 16 | noise); }
  return sum / 65536.0;
}

TEST_CASE(
    "bf16 moments: a number that can be stored stays, any other becomes a neighbour, and the mean stays") {
  using code = moment_code<state_format::bf16, moment::m>;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    for (std::uint32_t const noise : {0U, 0xFFFFFFFFU, 0x12345678U}) {
      REQUIRE(code::rounded(bits << 16, noise) == bits << 16);
    }
  }
  for (float const x : {1.001F, -3.14159F, 1e-30F, 7.77e20F, 1e-40F}) {
    auto const down = value(word(x) & 0xFFFF0000U), up = value((word(x) & 0xFFFF0000U) + 0x10000U);
    auto const rounded = [&](std::uint32_t noise) {
      float const y = value(code::rounded(word(x), noise));
      CHECK_MESSAGE((y == down || y == up), x, " became ", y);
      return double{y};
    };
    CHECK(mean_of(rounded) == doctest::Approx(double{x}).epsilon(1e-7));
    CHECK(value(code::rounded(word(x), 0U)) == down);
    CHECK(value(code::rounded(word(x), 0xFFFFFFFFU)) == up);
  }
}

template <moment Of>
void check_codes() {
  using code = int8_code<Of>;
  for (std::uint32_t exponent = code::least_exponent; exponent < 255; ++exponent) {
    auto const base = code::base(exponent);
    float before = -1.0F;
    for (std::uint32_t c = 0; c <= code::largest; ++c) {
      auto const x = code::decoded(c, base);
      REQUIRE(std::isfinite(value(x)));
      REQUIRE(value(x) > before);  // codes are in order
      before = value(x);
      for (std::uint32_t const noise : {0U, 0xFFFFFFFFU, 0x12345678U}) {
        REQUIRE(code::encoded(x, base, noise) == c);
      }
    }
    CHECK(code::exponent(word(before)) == exponent);  // the largest code does not change the exponent
  }
  CHECK(code::exponent(0U) == code::least_exponent);
}

TEST_CASE("int8 moments: every code is stored again as itself, with every exponent and any noise") {
  check_codes<moment::m>();
  check_codes<moment::v>();
  using code = int8_code<moment::m>;
  for (std::uint32_t c = 1; c <= 0x7FU; ++c) {  // m has a sign
    auto const base = code::base(120U);
    CHECK(value(code::decoded(c | 0x80U, base)) == -value(code::decoded(c, base)));
    CHECK(code::encoded(code::decoded(c | 0x80U, base), base, 0U) == (c | 0x80U));
  }
}

template <moment Of>
void check_rounding(float largest) {
  using code = int8_code<Of>;
  auto const base = code::base(code::exponent(word(largest)));
  double const step = std::ldexp(1.0, -code::fraction);  // of two neighbours, relative
  for (float const share : {0.97F, 0.6F, 0.123F, 0.01F, 3.3e-4F, 1e-4F}) {
    float const x = share * largest;
    auto const rounded = [&](std::uint32_t noise) {
      double const y = value(code::decoded(code::encoded(word(x), base, noise), base));
      CHECK(std::abs(y - double{x}) <= step * double{x});
      return y;
    };
    CHECK(mean_of(rounded) == doctest::Approx(double{x}).epsilon(1e-5));
  }
}

TEST_CASE("int8 moments: a number becomes a neighbour, and the mean stays") {
  for (float const largest : {1.0F, 1.99F, 3.7e-9F, 5e30F, 1e-33F}) {
    check_rounding<moment::m>(largest);
    check_rounding<moment::v>(largest);
  }
}

TEST_CASE("int8 moments: a v that is not zero never becomes zero, and zeros stay") {
  using code = int8_code<moment::v>;
  for (float const largest : {1.0F, 1e-20F, 1e30F}) {
    auto const base = code::base(code::exponent(word(largest)));
    for (float const x : {largest * 1e-6F, largest * 1e-15F, 1e-45F}) {
      CHECK(code::encoded(word(x), base, 0U) >= 1U);
      CHECK(code::encoded(word(x), base, 0xFFFFFFFFU) <= 1U);
    }
    CHECK(code::encoded(word(0.0F), base, 0xFFFFFFFFU) == 0U);
    CHECK(code::decoded(0U, base) == 0U);
  }
  using of_m = int8_code<moment::m>;
  CHECK(of_m::encoded(word(1e-30F), of_m::base(127U), 0U) == 0U);
  CHECK(of_m::decoded(of_m::encoded(word(-0.0F), of_m::base(127U), 0U), of_m::base(127U)) == word(-0.0F));
}

TEST_CASE("int8 moments: infinities and NaN survive") {
  using code = int8_code<moment::v>;
  auto const base = code::base(code::exponent(0x7FC00000U));
  CHECK(code::decoded(code::encoded(0x7F800000U, base, 0U), base) == 0x7F800000U);
  CHECK(std::isnan(value(code::decoded(code::encoded(0x7FC00000U, base, 0U), base))));
}

TEST_CASE("masters of bfloat16 weights keep 24 bits in int8, and the mean; others keep all") {
  using kernel::rounded_master;
  float const x = 1.0F + 0x1p-20F;
  CHECK(rounded_master<bfloat16, state_format::bf16>(word(x), 77U) == word(x));
  CHECK(rounded_master<float, state_format::int8>(word(x), 77U) == word(x));
  double sum = 0.0;
  constexpr int draws = 1 << 16;
  for (std::uint32_t i = 0; i < draws; ++i) {
    auto const bits = rounded_master<bfloat16, state_format::int8>(word(x), kernel::noise_of(i, 5U));
    REQUIRE((bits & 0xFFU) == 0U);
    REQUIRE(std::abs(double{value(bits)} - double{x}) < 0x1p-15);
    sum += double{value(bits)};
  }
  CHECK(sum / draws == doctest::Approx(double{x}).epsilon(1e-7));
}

TEST_CASE("the noise differs by element, step and unit, and its bits are even") {
  std::set<std::uint32_t> keys;
  for (int unit = 0; unit < 100; ++unit) {
    for (std::int64_t step = 0; step < 100; ++step) { keys.insert(kernel::noise_key(step, unit)); }
    keys.insert(kernel::noise_key(std::int64_t{1} << 33, unit));
  }
  CHECK(keys.size() == 100 * 101);
  constexpr int draws = 1 << 18;
  auto const expect_even = [](auto const& noise_of_draw) {
    std::vector<int> ones(32);
    std::vector<int> both(31);
    for (int i = 0; i < draws; ++i) {
      std::uint32_t const noise = noise_of_draw(i);
      for (std::size_t bit = 0; bit < 32; ++bit) { ones[bit] += static_cast<int>(noise >> bit & 1U); }
      for (std::size_t bit = 0; bit < 31; ++bit) {
        both[bit] += static_cast<int>(noise >> bit & noise >> (bit + 1) & 1U);
      }
    }
    for (auto const n : ones) { CHECK(std::abs(n - draws / 2) < 5 * 256); }
    for (auto const n : both) { CHECK(std::abs(n - draws / 4) < 5 * 256); }
  };
  expect_even([](int i) { return kernel::noise_of(static_cast<std::uint32_t>(i), 0xABCDU); });
  expect_even([](int step) { return kernel::noise_of(4096U, kernel::noise_key(step, 3)); });
}

TEST_CASE("formats have names") {
  for (auto const format : state_formats) { CHECK(state_format_of(name_of(format)) == format); }
  CHECK_FALSE(state_format_of("int4"));
  CHECK_FALSE(state_format_of(""));
}

}  // namespace
