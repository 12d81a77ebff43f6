// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/reports/history.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <cmath>
#include <fstream>
#include <limits>

namespace {

using namespace superoffload;
using train::history;

train::step_metrics step_with_loss(std::int64_t step, double loss) {
  train::step_metrics m;
  m.step = step;
  m.loss = loss;
  return m;
}

TEST_CASE("a long run has few points, each the mean of as many steps") {
  history h{4};
  for (int i = 1; i <= 4; ++i) { h.step(step_with_loss(i, i)); }
  CHECK(h.stride() == 1);
  CHECK(h.points().size() == 4);
  for (int i = 5; i <= 13; ++i) { h.step(step_with_loss(i, i)); }
  CHECK(h.stride() == 4);
  auto const points = h.points();
  REQUIRE(points.size() == 4);
  CHECK(points[0].step == 4);
  CHECK(points[0].means[history::loss] == 2.5);
  CHECK(points[2].means[history::loss] == 10.5);
  CHECK(points[3].step == 13);
  CHECK(points[3].means[history::loss] == 13.0);
}

TEST_CASE("values that are not finite are left out of the means") {
  history h{2};
  h.step(step_with_loss(1, std::numeric_limits<double>::quiet_NaN()));
  CHECK(std::isnan(h.points()[0].means[history::loss]));
  h.step(step_with_loss(2, 3.0));
  h.step(step_with_loss(3, 5.0));
  REQUIRE(h.points().size() == 2);
  CHECK(h.points()[0].means[history::loss] == 3.0);
}

TEST_CASE("a history continues from what the file of metrics has") {
  test::scratch_directory const directory;
  auto const file = directory.path() / "metrics.jsonl";
  train::step_metrics m = step_with_loss(1, 0.5);
  m.grad_norm = std::numeric_limits<double>::infinity();
  m.tokens_per_second = 7.0;
  std::ofstream{file} << to_json(m) << "\n" << to_json(train::evaluation_metrics{1, 0.25, 9}) << "\n";
  history h;
  h.read(file);
  REQUIRE(h.points().size() == 1);
  CHECK(h.points()[0].means[history::loss] == 0.5);
  CHECK(h.points()[0].means[history::tokens_per_second] == 7.0);
  CHECK(std::isnan(h.points()[0].means[history::grad_norm]));
  CHECK(std::isnan(h.points()[0].means[history::hit_rate]));  // of a run without updates off the device
  REQUIRE(h.evaluations().size() == 1);
  CHECK(h.evaluations()[0].loss == 0.25);

  std::ofstream{file, std::ios::app} << "{\"step\": \n";
  CHECK_THROWS_WITH_AS(history{}.read(file), doctest::Contains("line 3"), error);
}

}  // namespace
