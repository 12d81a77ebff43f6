// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/engine/step_progress.hpp>

#include <doctest/doctest.h>

#include <limits>

using namespace superoffload;
using train::step_progress;

namespace {

TEST_CASE("a step of two micro-batches, call by call") {
  step_progress p;
  CHECK_FALSE(p.is_under_way());
  CHECK_FALSE(p.is_complete());
  p.begin(10, 2, 1e-3);
  CHECK(p.is_under_way());
  CHECK((p.is_first() && !p.is_last()));
  p.forward();
  p.forward();  // the first one is replaced
  p.backward();
  CHECK((!p.is_first() && p.is_last() && p.is_under_way()));
  CHECK_THROWS_WITH_AS(p.expect_complete(1e-3), doctest::Contains("1 of 2 micro-batches"), error);
  p.forward();
  CHECK_THROWS_WITH_AS(p.expect_nothing_recorded("evaluate()"), doctest::Contains("evaluate() between"),
                       error);
  p.backward();
  p.expect_nothing_recorded("evaluate()");
  CHECK((p.is_complete() && !p.is_under_way()));
  p.expect_complete(1e-3);
  CHECK_THROWS_AS(p.expect_complete(2e-3), error);
  p.end();
  CHECK_FALSE(p.is_complete());
  CHECK_THROWS_AS(p.expect_complete(1e-3), error);
  CHECK_THROWS_AS(p.backward(), error);
}

TEST_CASE("a step without labels has no rate, and divides by one") {
  step_progress p;
  p.begin(0, 1, 1e-3);
  CHECK_FALSE(p.announced_rate());
  CHECK(p.divisor() == 1);
  p.forward();
  p.backward();
  p.expect_complete(5.0);
}

TEST_CASE("numbers that no step has are refused, and the step before stays") {
  step_progress p;
  p.begin(3, 1, {});
  for (double const rate :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(p.begin(3, 1, rate), error);
  }
  CHECK_THROWS_AS(p.begin(-1, 1, {}), error);
  CHECK_THROWS_AS(p.begin(3, 0, {}), error);
  CHECK(p.label_tokens() == 3);
  CHECK(p.is_under_way());
}

}  // namespace
