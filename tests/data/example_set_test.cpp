// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/example_set.hpp>

#include <doctest/doctest.h>

#include "numbered_examples.hpp"

#include <vector>

using namespace superoffload;
using namespace superoffload::data;

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
  CHECK(testing::masked_prefix(examples[0]) == 2);
  CHECK(examples[1].length() == 0);
  CHECK(tokens_of(examples[2]) == std::vector{9});
  CHECK(tokens_of(examples[3]) == std::vector{1, 2});
  CHECK(examples[3].learnt.empty());
  CHECK(examples.tokens() == 6);
  CHECK(examples.longest() == 3);
  CHECK(examples.largest_id() == 9);
  CHECK(examples.rows_without_labels() == 3);
}

TEST_CASE("a row's first token is no target, learnt or not") {
  std::vector<std::int32_t> const tokens{1, 2, 3, 4};
  auto const labels = [&](std::vector<token_range> const& learnt) {
    return example{tokens, learnt}.label_tokens();
  };
  CHECK(labels({{0, 4}}) == 3);
  CHECK(labels({{1, 4}}) == 3);
  CHECK(labels({{2, 4}}) == 2);
  CHECK(labels({{0, 1}}) == 0);
  CHECK(labels({{0, 1}, {3, 4}}) == 1);
  CHECK(labels({}) == 0);
}

TEST_CASE("a row may have many learnt ranges; empty ones are left out") {
  example_set examples;
  std::vector<token_range> const learnt{{1, 1}, {1, 2}, {3, 5}, {6, 6}};
  examples.add(std::vector{1, 2, 3, 4, 5, 6}, learnt);
  examples.add(std::vector{7}, std::vector<token_range>{});
  examples.add(std::vector{8, 9}, 1);
  example_set copy;
  copy.append(examples);
  for (auto const* const set : {&examples, &copy}) {
    CHECK(std::vector((*set)[0].learnt.begin(), (*set)[0].learnt.end()) ==
          std::vector<token_range>{{1, 2}, {3, 5}});
    CHECK((*set)[1].learnt.empty());
    CHECK(testing::masked_prefix((*set)[2]) == 1);
    CHECK((*set)[0].label_tokens() == 3);
    CHECK(set->rows_without_labels() == 1);
  }
}

TEST_CASE("ranges that are no part of an example are refused, and nothing is added") {
  example_set examples;
  std::vector<std::int32_t> const tokens{1, 2, 3};
  for (auto const& learnt : std::vector<std::vector<token_range>>{
           {{-1, 2}}, {{0, 4}}, {{2, 1}}, {{0, 2}, {1, 3}}, {{2, 3}, {0, 1}}}) {
    CHECK_THROWS_AS(examples.add(tokens, learnt), error);
  }
  CHECK_THROWS_AS(examples.add(tokens, -1), error);
  CHECK(examples.empty());
  examples.add(tokens, 7);  // a prompt that was cut
  CHECK(examples[0].learnt.empty());
}

}  // namespace
