// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/masters.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

using namespace superoffload;

TEST_CASE("the first value that no master holds is found wherever it is") {
  constexpr auto limit = bfloat16::master_limit;
  for (std::size_t const size : {1U, 7U, 64U, 1000U}) {
    std::vector<float> values(size, -std::nextafter(limit, 0.0F));
    CHECK(first_beyond_masters(std::span<float const>{values}) == size);
    for (float const bad : {limit, -limit, std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::nanf(""), -std::nanf("")}) {
      for (std::size_t const at : {std::size_t{0}, size / 2, size - 1}) {
        auto copy = values;
        copy[at] = bad;
        copy[size - 1] = bad;  // the first is reported
        CHECK(first_beyond_masters(std::span<float const>{copy}) == at);
      }
    }
  }
  CHECK(first_beyond_masters(std::span<float const>{}) == 0);
}

TEST_CASE("a bfloat16 that is finite is a master, but for the largest") {
  std::array<bfloat16, 3> const values{bfloat16{1.0F}, bfloat16::from_bits(0x7F7E),
                                       bfloat16::from_bits(0xFF80)};
  CHECK(first_beyond_masters(std::span<bfloat16 const>{values}) == 2);
  CHECK(std::isfinite(float{bfloat16::of_master(float{values[1]})}));
}
