// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/split.hpp>

#include <doctest/doctest.h>

using namespace superoffload;
using namespace superoffload::data;

namespace {

TEST_CASE("parts are contiguous, cover everything and differ by at most one") {
  for (std::int64_t count = 0; count < 30; ++count) {
    for (std::int64_t parts = 1; parts < 12; ++parts) {
      std::int64_t end = 0;
      for (std::int64_t index = 0; index < parts; ++index) {
        auto const part = part_of(count, parts, index);
        CHECK(part.begin == end);
        CHECK(part.size() >= count / parts);
        CHECK(part.size() <= (count + parts - 1) / parts);
        end = part.end;
      }
      CHECK(end == count);
    }
  }
}

TEST_CASE("the larger parts come first") {
  CHECK(part_of(5, 3, 0) == range{0, 2});
  CHECK(part_of(5, 3, 1) == range{2, 4});
  CHECK(part_of(5, 3, 2) == range{4, 5});
  CHECK(part_of(1, 3, 2).size() == 0);
}

}  // namespace
