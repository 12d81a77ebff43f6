// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/loader.hpp>
#include <superoffload/data/row_sizes.hpp>

#include <doctest/doctest.h>

#include "drawn_lengths.hpp"
#include "numbered_examples.hpp"

#include <set>

using namespace superoffload;
using namespace superoffload::data;

namespace {

TEST_CASE("few sizes, which hardly waste") {
  for (std::int64_t const most : {1000, 2048, 8192, 13'000, 65'536}) {
    CAPTURE(most);
    std::set<std::int64_t> sizes;
    double waste = 0.0;
    std::int64_t before = 0;
    for (std::int64_t rows = 1; rows <= most; ++rows) {
      auto const size = rounded_rows(rows, most);
      REQUIRE(size >= rows);
      if (rows >= 2048) {
        REQUIRE(static_cast<double>(size - rows) < 0.01 * static_cast<double>(rows));
      }
      REQUIRE(size <= most);
      REQUIRE((size == most || size % 16 == 0));
      REQUIRE(size >= before);
      REQUIRE(rounded_rows(size, most) == size);
      before = size;
      if (2 * rows > most) {
        sizes.insert(size);
        waste += static_cast<double>(size - rows) / static_cast<double>(rows);
      }
    }
    CHECK(rounded_rows(most, most) == most);
    CHECK(sizes.size() <= 129);
    if (most >= 2048) {
      CHECK(waste / static_cast<double>(most - most / 2) < 0.006);
    }
  }
  CHECK(rounded_rows(0, 8192) == 0);
}

TEST_CASE("rows without targets, in short documents") {
  batch made;
  add_rows_without_targets(made, 5, 3, 9);
  CHECK(made.rows() == 5);
  CHECK(made.label_tokens() == 0);
  CHECK(made.positions == std::vector<std::int32_t>{0, 1, 2, 0, 1});
  CHECK(made.starts == std::vector<std::int32_t>{0, 3, 5});
  add_rows_without_targets(made, 1, 3, 8);
  CHECK(made.tokens == std::vector<std::int32_t>{9, 9, 9, 9, 9, 8});
  CHECK(made.starts == std::vector<std::int32_t>{0, 3, 5, 6});
  CHECK(made.padding == std::vector<std::int32_t>(6, 1));
}

TEST_CASE("rows without targets behind others are padding, the others are not") {
  batch made;
  made.tokens = {4, 5};
  made.targets = {5, -1};
  made.positions = {0, 1};
  made.starts = {0, 2};
  add_rows_without_targets(made, 0, 3, 9);
  CHECK(made.padding.empty());
  add_rows_without_targets(made, 3, 3, 9);
  CHECK(made.padding == std::vector<std::int32_t>{0, 0, 1, 1, 1});
}

TEST_CASE("a loader rounds its batches: the same documents, and rows without targets behind them") {
  auto const examples = testing::log_normal_examples(300, 1024);
  loader_options options{.batch_size = 16, .micro_batches = 2, .max_length = 1024};
  loader exact{examples, options};
  options.most_rows = 8 * 1024;
  loader rounded{examples, options};
  for (auto steps = exact.steps_per_epoch(); steps > 0; --steps) {
    auto const expected = exact.next(), found = rounded.next();
    CHECK(found.tokens == expected.tokens);
    CHECK(found.label_tokens == expected.label_tokens);
    for (std::size_t i = 0; i < 2; ++i) {
      auto const& was = expected.micro_batches[i];
      auto const& is = found.micro_batches[i];
      CHECK(is.rows() == rounded_rows(was.rows(), options.most_rows));
      CHECK(is.label_tokens() == was.label_tokens());
      CHECK(std::equal(was.tokens.begin(), was.tokens.end(), is.tokens.begin()));
      CHECK(std::equal(was.starts.begin(), was.starts.end(), is.starts.begin()));
      CHECK(is.noise == was.noise);
    }
  }
}

}  // namespace
