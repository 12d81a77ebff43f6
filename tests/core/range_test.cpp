// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/range.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>

using namespace superoffload;

TEST_CASE("the last range is the one that this thread entered last") {
  std::thread{[] {
    CHECK(last_range().empty());
    enter_range("forward of ", std::string{"model.layers.17"});
    CHECK(last_range() == "forward of model.layers.17");
    enter_range("optimizer step");
    CHECK(last_range() == "optimizer step");
    std::thread{[] { CHECK(last_range().empty()); }}.join();
  }}.join();
}

TEST_CASE("a long name is cut") {
  enter_range("backward of ", std::string(200, 'x'));
  CHECK(last_range() == "backward of " + std::string(84, 'x'));
  enter_range("");
}
