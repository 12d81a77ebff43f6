// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/packing.hpp>

#include <doctest/doctest.h>

#include "numbered_examples.hpp"

namespace superoffload::data {
namespace {

using starts = std::vector<std::int64_t>;

TEST_CASE("a row goes into the open sequence if it fits; no earlier one is looked at again") {
  auto const examples =
      testing::examples_of({{1, 2, 3}, {4, 5}, {6}, {7, 8, 9, 10, 11}, {12}, {13, 14, 15, 16}, {17}});
  starts const order{0, 1, 2, 3, 4, 5, 6};
  CHECK(pack(examples, order, 5) == starts{0, 2, 3, 4, 6, 7});
  CHECK(pack(examples, order, 6) == starts{0, 3, 5, 7});
  CHECK(pack(examples, order, 100) == starts{0, 7});
  CHECK(pack(examples, starts{3, 0, 6}, 5) == starts{0, 1, 3});
  CHECK(pack(examples, starts{}, 5) == starts{0});
}

TEST_CASE("a row that no sequence can hold is a broken promise") {
  auto const examples = testing::examples_of({{1}, {1, 2, 3}});
  CHECK_THROWS_AS(pack(examples, starts{0, 1}, 2), error);
}

TEST_CASE("no sequence is too long and none could have taken the next row") {
  auto const examples = testing::numbered_examples(500, 40);
  starts order(500);
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<std::int64_t>(i * 7 % order.size());
  }
  for (std::int64_t const most : {40, 41, 64, 1000}) {
    auto const cuts = pack(examples, order, most);
    CHECK(cuts.front() == 0);
    CHECK(cuts.back() == 500);
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
      std::int64_t used = 0;
      for (auto place = cuts[s]; place < cuts[s + 1]; ++place) {
        used += examples[order[static_cast<std::size_t>(place)]].length();
      }
      CHECK(used <= most);
      if (s + 2 < cuts.size()) {
        CHECK(used + examples[order[static_cast<std::size_t>(cuts[s + 1])]].length() > most);
      }
    }
  }
}

}  // namespace
}  // namespace superoffload::data
