// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/example_set.hpp>

#include <doctest/doctest.h>

namespace superoffload::data {
namespace {

std::vector<std::int32_t> tokens_of(example const& row) { return {row.tokens.begin(), row.tokens.end()}; }

TEST_CASE("rows come out as they went in") {
  example_set examples;
  CHECK(examples.empty());
  CHECK(examples.largest_id() == -1);
  CHECK(examples.longest() == 0);
  examples.add(std::vector{5, 6, 7}, 2);
  examples.add(std::vector<std::int32_t>{}, 0);
  example_set more;
  more.add(std::vector{9}, 0);
  more.add(std::vector{1, 2}, 2);
  examples.append(more);
  REQUIRE(examples.size() == 4);
  CHECK(tokens_of(examples[0]) == std::vector{5, 6, 7});
  CHECK(examples[0].masked == 2);
  CHECK(examples[1].length() == 0);
  CHECK(tokens_of(examples[2]) == std::vector{9});
  CHECK(tokens_of(examples[3]) == std::vector{1, 2});
  CHECK(examples[3].masked == 2);
  CHECK(examples.tokens() == 6);
  CHECK(examples.longest() == 3);
  CHECK(examples.largest_id() == 9);
  CHECK(examples.rows_without_labels() == 3);
}

TEST_CASE("a row's first token is nobody's target, masked or not") {
  std::vector<std::int32_t> const tokens{1, 2, 3, 4};
  CHECK(example{tokens, 0}.label_tokens() == 3);
  CHECK(example{tokens, 1}.label_tokens() == 3);
  CHECK(example{tokens, 2}.label_tokens() == 2);
  CHECK(example{tokens, 4}.label_tokens() == 0);
  CHECK(example{{}, 0}.label_tokens() == 0);
}

}  // namespace
}  // namespace superoffload::data
