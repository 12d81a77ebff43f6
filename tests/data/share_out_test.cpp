// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/data/packing.hpp>
#include <superoffload/data/share_out.hpp>

#include <doctest/doctest.h>

#include "drawn_lengths.hpp"
#include "numbered_examples.hpp"

#include <algorithm>
#include <numeric>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using rows = std::vector<std::int64_t>;

/// Training Llama-8B: three times two FLOPs of each parameter a token; 3.5 times four FLOPs for each of 4,096
/// channels of 32 layers and for half of a document's pairs.
constexpr document_cost of_llama_8b{3 * 2 * 7.5e9, 3.5 * 4 * 4096 * 32 / 2};

std::vector<rows> shared(example_set const& examples, std::vector<rows> const& lines, std::int64_t parts,
                         std::int64_t most_tokens, document_cost const& cost = {}) {
  std::vector<sequence> const sequences(lines.begin(), lines.end());
  return share_out(examples, sequences, parts, most_tokens, cost);
}

TEST_CASE("the cost of a document: its tokens and their square") {
  CHECK(document_cost{}(7) == 7.0);
  CHECK(document_cost{2.0, 0.5}(10) == 70.0);
}

TEST_CASE("parts of equal cost; the costliest first, rows in their order") {
  auto const examples = testing::examples_of({{1, 2, 3}, {4}, {5, 6}, {7, 8, 9, 10}, {11, 12}});
  CHECK(shared(examples, {{0}, {1}, {2}, {3}, {4}}, 2, 100) == std::vector<rows>{{3, 4}, {0, 1, 2}});
}

TEST_CASE("one part has everything, and there are no more parts than rows") {
  auto const examples = testing::numbered_examples(7, 5);
  CHECK(shared(examples, {{3, 1}, {6}, {0}}, 1, 100) == std::vector<rows>{{3, 1, 6, 0}});
  CHECK(shared(examples, {{3, 1}, {6}, {0}}, 1'000'000, 100).size() == 4);
  CHECK(shared(examples, {}, 3, 100).empty());
}

TEST_CASE("every row once, in parts within their bound, however the rows come") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const examples = testing::log_normal_examples(23, 700, seed);
    std::vector<rows> lines;
    for (std::int64_t row = 0; row < 23; ++row) { lines.push_back({row}); }
    for (std::int64_t const parts : {1, 2, 3, 5, 22, 23}) {
      auto const most = most_tokens_of_part(23, 700, parts);
      rows seen;
      for (auto const& part : shared(examples, lines, parts, most, of_llama_8b)) {
        std::int64_t tokens = 0;
        for (auto const row : part) {
          tokens += examples[row].length();
          seen.push_back(row);
        }
        CHECK(tokens <= most);
      }
      std::ranges::sort(seen);
      rows all(23);
      std::iota(all.begin(), all.end(), 0);
      CHECK(seen == all);
    }
  }
}

/// The largest difference between two parts of a step, over the whole steps of an epoch.
double largest_difference(loader_options options, std::int64_t max_length) {
  auto const examples = testing::log_normal_examples(3000, max_length);
  options.max_length = max_length;
  options.cost = of_llama_8b;
  options.seed = 3;
  loader from{examples, options};
  double largest = 0.0;
  for (auto steps = from.steps_per_epoch(); steps > 1; --steps) {
    std::vector<double> costs;
    for (auto const& made : from.next().micro_batches) {
      costs.push_back(0.0);
      for (std::size_t d = 0; d + 1 < made.starts.size(); ++d) {
        costs.back() += of_llama_8b(made.starts[d + 1] - made.starts[d]);
      }
    }
    auto const [least, most] = std::ranges::minmax(costs);
    largest = std::max(largest, 1.0 - least / most);
  }
  return largest;
}

TEST_CASE("parts of a step are at most 2 % apart") {
  for (std::int64_t const max_length : {2048, 4096}) {
    CAPTURE(max_length);
    for (std::int64_t const parts : {2, 4}) {
      CAPTURE(parts);
      CHECK(largest_difference({.batch_size = 16 * parts, .micro_batches = parts}, max_length) < 0.02);
      CHECK(largest_difference({.batch_size = 4 * parts, .micro_batches = parts, .packing = true},
                               max_length) < 0.02);
    }
  }
}

TEST_CASE("a part is never more than planned: full sequences, one for each part") {
  auto const examples = testing::log_normal_examples(400, 2048);
  loader_options const options{
      .batch_size = 4, .micro_batches = 4, .packing = true, .max_length = 2048, .cost = of_llama_8b};
  loader from{examples, options};
  for (auto steps = from.steps_per_epoch(); steps > 0; --steps) {
    for (auto const& made : from.next().micro_batches) { CHECK(made.rows() <= 2048); }
  }
}

TEST_CASE("a part of a token budget is never more than planned") {
  auto const examples = testing::log_normal_examples(2000, 2048);
  for (std::int64_t const parts : {1, 3, 8}) {
    auto const most = most_tokens_of_part_within(8192, 2048, parts);
    CHECK(most <= 8192);
    CHECK(most >= 8192 / parts);
    loader from{examples,
                {.tokens_per_batch = 8192, .micro_batches = parts, .max_length = 2048, .cost = of_llama_8b}};
    for (auto steps = from.steps_per_epoch(); steps > 0; --steps) {
      auto const step = from.next();
      CHECK(step.tokens <= 8192);
      for (auto const& made : step.micro_batches) { CHECK(made.rows() <= most); }
    }
  }
}

TEST_CASE("rows that do not fit into the parts are a broken promise") {
  auto const examples = testing::examples_of({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  CHECK_THROWS_AS(shared(examples, {{0}, {1}, {2}}, 2, 5), error);
}

}  // namespace
