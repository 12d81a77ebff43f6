// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/data/packing.hpp>
#include <superoffload/data/shuffle.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <doctest/doctest.h>

#include "drawn_lengths.hpp"
#include "numbered_examples.hpp"

#include <algorithm>
#include <filesystem>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using rows = std::vector<std::int64_t>;

rows lengths_of(example_set const& examples, packed_rows const& packed) {
  REQUIRE(packed.starts.front() == 0);
  REQUIRE(packed.starts.back() == static_cast<std::int64_t>(packed.order.size()));
  rows lengths;
  for (std::size_t s = 0; s + 1 < packed.starts.size(); ++s) {
    CHECK(packed.starts[s] < packed.starts[s + 1]);
    lengths.push_back(0);
    for (auto place = packed.starts[s]; place < packed.starts[s + 1]; ++place) {
      lengths.back() += examples[packed.order[static_cast<std::size_t>(place)]].length();
    }
  }
  return lengths;
}

double fill(example_set const& examples, std::int64_t max_length) {
  auto const packed = pack(examples, shuffled_rows(examples.size(), 3, 0), max_length);
  return static_cast<double>(examples.tokens()) /
         static_cast<double>(max_length * static_cast<std::int64_t>(packed.starts.size() - 1));
}

TEST_CASE("the longest row first, each where it leaves the least room") {
  auto const examples = testing::examples_of({{1, 2}, {3, 4, 5, 6}, {7}, {8, 9, 10}, {11, 12, 13, 14, 15}});
  auto const packed = pack(examples, rows{0, 1, 2, 3, 4}, 6);
  // 4 has room for 2, 1 for 0, and 3 is alone; sequences as their longest rows come, rows as they come.
  CHECK(packed.order == rows{0, 1, 3, 2, 4});
  CHECK(packed.starts == rows{0, 2, 3, 5});
  CHECK(pack(examples, rows{4, 2}, 6).order == rows{4, 2});
  CHECK(pack(examples, rows{}, 6).starts == rows{0});
}

TEST_CASE("a window is packed by itself") {
  auto const examples = testing::numbered_examples(500, 40);
  auto const order = shuffled_rows(500, 5, 0);
  auto const packed = pack(examples, order, 64, 100);
  for (auto const length : lengths_of(examples, packed)) { CHECK(length <= 64); }
  for (std::size_t begin = 0; begin < 500; begin += 100) {
    rows expected(order.begin() + static_cast<std::ptrdiff_t>(begin),
                  order.begin() + static_cast<std::ptrdiff_t>(begin + 100));
    rows found(packed.order.begin() + static_cast<std::ptrdiff_t>(begin),
               packed.order.begin() + static_cast<std::ptrdiff_t>(begin + 100));
    std::ranges::sort(expected);
    std::ranges::sort(found);
    CHECK(found == expected);
  }
}

TEST_CASE("long and short rows come as early and as late as before") {
  auto const examples = testing::log_normal_examples(8000, 2048);
  auto const packed = pack(examples, shuffled_rows(8000, 5, 0), 2048, 8000);
  auto const half = packed.starts[packed.starts.size() / 2];
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < half; ++i) {
    tokens += examples[packed.order[static_cast<std::size_t>(i)]].length();
  }
  double const mean = static_cast<double>(examples.tokens()) / 8000.0;
  CHECK(static_cast<double>(tokens) / static_cast<double>(half) == doctest::Approx(mean).epsilon(0.05));
}

TEST_CASE("sequences are full: log-normal lengths") {
  for (std::int64_t const max_length : {2048, 4096}) {
    CAPTURE(max_length);
    CHECK(fill(testing::log_normal_examples(20'000, max_length), max_length) > 0.98);
    CHECK(fill(testing::log_normal_examples(1000, max_length), max_length) > 0.98);
  }
}

TEST_CASE("sequences are full: the bundled instructions and model") {
  std::filesystem::path const bundled{SUPEROFFLOAD_TEST_DATA "/../../examples"};
  auto const instructions = read_instructions(bundled / "data" / "alpaca_en_demo.json");
  auto const tokenizer = text::tokenizer::load(bundled / "models" / "tiny_llama");
  for (std::int64_t const max_length : {1024, 2048, 4096}) {
    CAPTURE(max_length);
    CHECK(fill(encode_examples(instructions, tokenizer, {.max_length = max_length}), max_length) > 0.98);
  }
  // Half of the rows are longer than half of a sequence here: no packing gets beyond 0.988.
  CHECK(fill(encode_examples(instructions, tokenizer, {.max_length = 512}), 512) > 0.978);
}

TEST_CASE("in order: a row goes into the open sequence if it fits; no earlier one is looked at again") {
  auto const examples =
      testing::examples_of({{1, 2, 3}, {4, 5}, {6}, {7, 8, 9, 10, 11}, {12}, {13, 14, 15, 16}, {17}});
  rows const order{0, 1, 2, 3, 4, 5, 6};
  CHECK(pack_in_order(examples, order, 5).starts == rows{0, 2, 3, 4, 6, 7});
  CHECK(pack_in_order(examples, order, 6).starts == rows{0, 3, 5, 7});
  CHECK(pack_in_order(examples, order, 100).starts == rows{0, 7});
  CHECK(pack_in_order(examples, rows{3, 0, 6}, 5).starts == rows{0, 1, 3});
  CHECK(pack_in_order(examples, rows{3, 0, 6}, 5).order == rows{3, 0, 6});
  CHECK(pack_in_order(examples, rows{}, 5).starts == rows{0});
}

TEST_CASE("in order: no sequence is too long and none could have taken the next row") {
  auto const examples = testing::numbered_examples(500, 40);
  rows order(500);
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<std::int64_t>(i * 7 % order.size());
  }
  for (std::int64_t const most : {40, 41, 64, 1000}) {
    auto const packed = pack_in_order(examples, order, most);
    auto const lengths = lengths_of(examples, packed);
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      CHECK(lengths[s] <= most);
      if (s + 1 < lengths.size()) {
        CHECK(lengths[s] + examples[order[static_cast<std::size_t>(packed.starts[s + 1])]].length() > most);
      }
    }
  }
}

TEST_CASE("a row that no sequence can hold is a broken promise") {
  auto const examples = testing::examples_of({{1}, {1, 2, 3}});
  CHECK_THROWS_AS(pack(examples, rows{0, 1}, 2), error);
  CHECK_THROWS_AS(pack_in_order(examples, rows{0, 1}, 2), error);
}

}  // namespace
