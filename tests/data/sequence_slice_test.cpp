// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/sequence_slice.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

using namespace superoffload::data;

namespace {

/// Two documents, of 5 and of 2 tokens.
batch const whole{.tokens = {10, 11, 12, 13, 14, 20, 21},
                  .targets = {11, 12, 13, 14, -1, 21, -1},
                  .positions = {0, 1, 2, 3, 4, 0, 1},
                  .starts = {0, 5, 7},
                  .noise = 7};

using numbers = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("slices have the rows of a micro-batch, one after the other, and padding at their end") {
  for (int const ranks : {1, 2, 3, 7}) {
    for (std::int64_t const rows : {7, 8, 20}) {
      CAPTURE(ranks);
      CAPTURE(rows);
      batch joined;
      std::int64_t labels = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        auto const slice = slice_of(whole, rows, rank, ranks, 5);
        CHECK(slice.rows() == rows_of_slice(rows, ranks));
        CHECK(slice.starts.back() == ranks * slice.rows());
        CHECK((slice.noise != whole.noise));
        labels += slice.label_tokens();
        auto const append = [](numbers& to, numbers const& from) {
          to.insert(to.end(), from.begin(), from.end());
        };
        append(joined.tokens, slice.tokens);
        append(joined.targets, slice.targets);
        append(joined.positions, slice.positions);
        append(joined.padding, slice.padding);
      }
      CHECK(labels == whole.label_tokens());
      auto const all = static_cast<std::size_t>(ranks * rows_of_slice(rows, ranks));
      REQUIRE(joined.tokens.size() == all);
      for (std::size_t i = 0; i < all; ++i) {
        bool const padding = i >= whole.tokens.size();
        CHECK((joined.padding.empty() ? 0 : joined.padding[i]) == (padding ? 1 : 0));
        CHECK(joined.targets[i] == (padding ? -1 : whole.targets[i]));
        if (!padding) {
          CHECK(joined.tokens[i] == whole.tokens[i]);
          CHECK(joined.positions[i] == whole.positions[i]);
        }
      }
    }
  }
}

TEST_CASE("the slices of an empty micro-batch are padding") {
  auto const slice = slice_of({}, 5, 1, 2, 64);
  CHECK(slice.tokens == numbers{0, 0, 0});
  CHECK(slice.padding == numbers{1, 1, 1});
  CHECK(slice.label_tokens() == 0);
  CHECK(slice.starts == numbers{0, 6});
}

TEST_CASE("padding has no longer documents than asked for, and none of more than a few rows") {
  CHECK(slice_of({}, 5, 0, 2, 4).starts == numbers{0, 4, 6});
  CHECK(slice_of({}, 100, 0, 2, 1000).starts == numbers{0, 64, 100});
  CHECK(slice_of(whole, 12, 0, 3, 2).starts == numbers{0, 5, 7, 9, 11, 12});
}
