// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/run/run_summary.hpp>

#include <doctest/doctest.h>

namespace {

using namespace superoffload;

TEST_CASE("the mean of the steps leaves out the first two if there are others, and keeps none of them") {
  train::step_mean mean;
  CHECK_FALSE(mean.mean());
  struct {
    double time, tokens, mean_time, mean_tokens;
  } const steps[] = {{8, 100, 8, 100}, {4, 50, 4, 50}, {2, 10, 2, 10}, {3, 30, 2.5, 20}, {4, 20, 3, 20}};
  for (auto const& step : steps) {
    mean.add({step.time, step.tokens});
    REQUIRE(mean.mean());
    CHECK(mean.mean()->time == step.mean_time);
    CHECK(mean.mean()->tokens == step.mean_tokens);
  }
  static_assert(sizeof mean <= 4 * sizeof(double));

  train::step_mean nothing;
  nothing.add({1.0, 0.0});
  CHECK_FALSE(nothing.mean());
}

}  // namespace
