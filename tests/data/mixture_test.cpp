// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/loader.hpp>
#include <superoffload/data/mixture.hpp>

#include <doctest/doctest.h>

#include "numbered_examples.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using numbers = std::vector<std::int64_t>;

TEST_CASE("shares are proportional, add up to the rows, and equal remainders go to the first sets") {
  CHECK(shares_of({{50, 50}, {0.7, 0.3}}) == numbers{70, 30});
  CHECK(shares_of({{10, 90}, {1.0, 1.0}}) == numbers{50, 50});
  CHECK(shares_of({{3, 3, 1}, {2.0, 2.0, 2.0}}) == numbers{3, 2, 2});
  CHECK(shares_of({{1000, 3}, {1.0, 0.0001}}) == numbers{1003, 0});
  CHECK(shares_of({}).empty());
}

TEST_CASE("an epoch has each set's share, and no row again before the others of its set") {
  mixture const sets{{7, 40, 13}, {3.0, 1.0, 1.0}};  // an epoch: 36, 12, 12
  std::vector<int> seen(60);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    auto const rows = mixed_rows(sets, 5, epoch);
    REQUIRE(rows.size() == 60);
    numbers share(3);
    for (auto const row : rows) {
      REQUIRE((0 <= row && row < 60));
      ++share[row < 7 ? 0 : row < 47 ? 1 : 2];
      ++seen[static_cast<std::size_t>(row)];
    }
    CHECK(share == numbers{36, 12, 12});
    for (auto const& [begin, end] : {std::pair{0, 7}, {7, 47}, {47, 60}}) {
      auto const [least, most] = std::minmax_element(seen.begin() + begin, seen.begin() + end);
      CHECK(*most - *least <= 1);
    }
  }
}

TEST_CASE("the order depends on seed and epoch, not on earlier calls, and mixes the sets") {
  mixture const sets{{20, 30}, {1.0, 1.0}};
  auto const third = mixed_rows(sets, 1, 3);
  CHECK(mixed_rows(sets, 1, 3) == third);
  CHECK(mixed_rows(sets, 1, 4) != third);
  CHECK(mixed_rows(sets, 2, 3) != third);
  auto const from_first = [](std::int64_t row) { return row < 20; };
  CHECK(std::count_if(third.begin(), third.begin() + 25, from_first) > 5);
  CHECK(std::count_if(third.begin() + 25, third.end(), from_first) > 5);
  auto const one = mixed_rows({{9, 9}, {1.0, 1.0}}, 1, 0);
  numbers first, second;
  for (auto const row : one) { (row < 9 ? first : second).push_back(row % 9); }
  CHECK(first != second);  // sets of the same size have orders of their own
}

TEST_CASE("a loader follows the mixture, and continues it from any position") {
  auto const examples = testing::numbered_examples(50, 9);
  loader_options options{.batch_size = 7, .seed = 3, .mixed = {{10, 40}, {1.0, 1.0}}};
  loader whole{examples, options};
  std::vector<std::vector<std::int32_t>> steps;
  std::vector<position> positions;
  for (int i = 0; i < 24; ++i) {
    positions.push_back(whole.where());
    steps.push_back(whole.next().micro_batches.front().tokens);
  }
  CHECK(whole.where().epoch == 3);  // 8 steps of 50 rows each
  for (std::size_t from : {5U, 8U, 13U, 23U}) {
    loader resumed{examples, options};
    resumed.seek(positions[from]);
    for (std::size_t i = from; i < steps.size(); ++i) {
      CHECK(resumed.next().micro_batches.front().tokens == steps[i]);
    }
  }
  options.mixed = {};
  loader plain{examples, options};
  CHECK(plain.next().micro_batches.front().tokens != steps[0]);
}

}  // namespace
