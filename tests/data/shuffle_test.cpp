// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/shuffle.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

using namespace superoffload;
using namespace superoffload::data;

namespace {

std::vector<std::int64_t> in_order(std::int64_t rows) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

TEST_CASE("the numbers that saved runs rely on never change") {
  // From an independent program whose mixing step gives SplitMix64's published first numbers.
  CHECK(random_bits(0, 0, 0) == 2558736989570252433U);
  CHECK(random_bits(42, 3, 7) == 1270451472921855637U);
  CHECK(random_bits(~std::uint64_t{0}, 1, 1'000'000) == 16092933228609968573U);
}

TEST_CASE("every row once, in an order of its own for each seed and epoch") {
  for (std::int64_t const rows : {0, 1, 2, 3, 17, 1000}) {
    auto order = shuffled_rows(rows, 42, 0);
    CHECK(order == shuffled_rows(rows, 42, 0));
    std::sort(order.begin(), order.end());
    CHECK(order == in_order(rows));
  }
  auto const order = shuffled_rows(1000, 42, 0);
  CHECK(order != in_order(1000));
  CHECK(order != shuffled_rows(1000, 42, 1));
  CHECK(order != shuffled_rows(1000, 43, 0));
  CHECK(shuffled_rows(1000, 42, 1) != shuffled_rows(1000, 43, 0));
}

TEST_CASE("the orders that saved runs rely on never change") {
  CHECK(shuffled_rows(10, 42, 0) == std::vector<std::int64_t>{1, 0, 3, 9, 4, 7, 6, 8, 5, 2});
  CHECK(shuffled_rows(10, 42, 1) == std::vector<std::int64_t>{3, 2, 1, 6, 0, 5, 7, 9, 4, 8});
}

TEST_CASE("all orders are about as frequent") {
  // 24 orders of 4 rows, 24000 epochs: 1000 each, standard deviation 31.
  std::vector<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 24'000; ++epoch) { orders.push_back(shuffled_rows(4, 7, epoch)); }
  std::sort(orders.begin(), orders.end());
  std::size_t kinds = 0;
  for (auto at = orders.begin(); at != orders.end(); ++kinds) {
    auto const end = std::upper_bound(at, orders.end(), *at);
    CHECK(std::abs((end - at) - 1000) < 160);
    at = end;
  }
  CHECK(kinds == 24);
}

}  // namespace
