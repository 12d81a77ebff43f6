// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/collate.hpp>

#include <doctest/doctest.h>

#include "numbered_examples.hpp"

#include <algorithm>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using ids = std::vector<std::int32_t>;
using rows = std::vector<std::int64_t>;

batch collated(example_set const& examples, std::vector<rows> const& lines, collation const& options) {
  std::vector<sequence> const sequences(lines.begin(), lines.end());
  auto made = collate(examples, sequences, options);
  CHECK(made.targets.size() == made.tokens.size());
  CHECK(made.positions.size() == made.tokens.size());
  CHECK(made.starts.front() == 0);
  CHECK(made.starts.back() == made.rows());
  return made;
}

TEST_CASE("without padding a row is a document of its own length") {
  auto const examples = testing::examples_of({{11, 12, 13}, {21}, {31, 32, 33, 34, 35}}, 2);
  for (bool const packing : {false, true}) {
    auto const made = collated(examples, {{0}, {1}}, {.packing = packing, .max_length = 9, .pad_id = 7});
    CHECK(made.tokens == ids{11, 12, 13, 21});
    CHECK(made.targets == ids{-1, 13, -1, -1});
    CHECK(made.positions == ids{0, 1, 2, 0});
    CHECK(made.starts == ids{0, 3, 4});
    CHECK(made.padding.empty());
  }
}

TEST_CASE("padding to the longest row of the micro-batch") {
  auto const examples = testing::examples_of({{11, 12, 13}, {21}, {31, 32, 33, 34, 35}}, 2);
  auto const made =
      collated(examples, {{0}, {1}}, {.padding = pad_to::longest, .max_length = 9, .pad_id = 7});
  CHECK(made.tokens == ids{11, 12, 13, 21, 7, 7});
  CHECK(made.targets == ids{-1, 13, -1, -1, -1, -1});
  CHECK(made.positions == ids{0, 1, 2, 0, 1, 2});
  CHECK(made.starts == ids{0, 3, 6});
  CHECK(made.padding == ids{0, 0, 0, 0, 1, 1});
  CHECK(made.documents() == 2);
  CHECK(made.label_tokens() == 1);
}

TEST_CASE("padding to max_length") {
  auto const examples = testing::examples_of({{11, 12, 13}, {21}});
  auto const made =
      collated(examples, {{1}, {0}}, {.padding = pad_to::max_length, .max_length = 4, .pad_id = 0});
  CHECK(made.tokens == ids{21, 0, 0, 0, 11, 12, 13, 0});
  CHECK(made.targets == ids{-1, -1, -1, -1, 12, 13, -1, -1});
  CHECK(made.positions == ids{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(made.padding == ids{0, 1, 1, 1, 0, 0, 0, 1});
  CHECK(made.starts == ids{0, 4, 8});
}

TEST_CASE("padding that is learnt: every token but the first of a sequence is a target") {
  auto const examples = testing::examples_of({{11, 12, 13}, {21}});
  auto const made =
      collated(examples, {{1}, {0}},
               {.padding = pad_to::max_length, .max_length = 4, .pad_id = 9, .learn_padding = true});
  CHECK(made.tokens == ids{21, 9, 9, 9, 11, 12, 13, 9});
  CHECK(made.targets == ids{9, 9, 9, -1, 12, 13, 9, -1});
  CHECK(made.padding == ids{0, 1, 1, 1, 0, 0, 0, 1});
  CHECK(made.positions == ids{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(made.starts == ids{0, 4, 8});
}

TEST_CASE("packed rows are documents") {
  auto const examples = testing::examples_of({{11, 12, 13}, {21}, {31, 32}, {41, 42, 43}}, 1);
  collation options{.packing = true, .max_length = 7, .pad_id = 9};
  auto made = collated(examples, {{0, 1}, {2}}, options);
  CHECK(made.tokens == ids{11, 12, 13, 21, 31, 32});
  CHECK(made.targets == ids{12, 13, -1, -1, 32, -1});
  CHECK(made.positions == ids{0, 1, 2, 0, 0, 1});
  CHECK(made.starts == ids{0, 3, 4, 6});

  options.padding = pad_to::max_length;
  made = collated(examples, {{0, 1}, {2, 0, 2}}, options);
  CHECK(made.tokens == ids{11, 12, 13, 21, 9, 9, 9, 31, 32, 11, 12, 13, 31, 32});
  CHECK(made.positions == ids{0, 1, 2, 0, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1});
  CHECK(made.starts == ids{0, 3, 4, 7, 9, 12, 14});
  CHECK(made.padding == ids{0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0});
  CHECK(made.label_tokens() == 6);
}

TEST_CASE("several ranges of a row are learnt") {
  example_set examples;
  examples.add(ids{11, 12, 13, 14, 15, 16}, std::vector<token_range>{{0, 2}, {4, 5}});
  examples.add(ids{21, 22, 23}, std::vector<token_range>{{2, 3}});
  for (bool const packing : {false, true}) {
    auto const made = collated(examples, {{0}, {1}}, {.packing = packing, .max_length = 6, .pad_id = 7});
    auto expected = ids{12, -1, -1, 15, -1, -1, -1, 23, -1};
    expected.resize(made.tokens.size(), -1);  // padding
    CHECK(made.targets == expected);
    CHECK(made.label_tokens() == examples[0].label_tokens() + examples[1].label_tokens());
  }
}

TEST_CASE("a micro-batch of nothing has no rows and no documents") {
  auto const examples = testing::examples_of({{1}});
  for (bool const packing : {false, true}) {
    auto const made =
        collated(examples, {}, {.padding = pad_to::max_length, .packing = packing, .max_length = 4});
    CHECK(made.rows() == 0);
    CHECK(made.documents() == 0);
  }
}

TEST_CASE("the targets are the examples' labels, packed or padded") {
  auto const examples = testing::numbered_examples(60, 13);
  for (bool const packing : {false, true}) {
    for (auto const padding : {pad_to::none, pad_to::longest, pad_to::max_length}) {
      for (std::int64_t row = 0; row < examples.size(); ++row) {
        auto const made = collated(examples, {{row}}, {padding, packing, 16, 0});
        CHECK(made.label_tokens() == examples[row].label_tokens());
        auto const tokens = examples[row].tokens;
        auto const masked = testing::masked_prefix(examples[row]);
        ids labels(17, -1);
        std::copy(tokens.begin() + masked, tokens.end(), labels.begin() + masked);
        CHECK(made.targets == ids(labels.begin() + 1, labels.begin() + 1 + made.rows()));
      }
    }
  }
}

}  // namespace
