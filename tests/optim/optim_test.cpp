// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/optim/adamw.hpp>
#include <superoffload/optim/clip.hpp>
#include <superoffload/optim/schedule.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace {

using namespace superoffload;
using optim::schedule;

TEST_CASE("schedules follow transformers: warm-up from 0, then constant, linear or cosine to the end") {
  schedule s{.kind = schedule::shape::cosine, .peak = 5e-4, .warmup_steps = 4, .total_steps = 12};
  CHECK(s(0) == 0.0);
  CHECK(s(1) == doctest::Approx(1.25e-4));
  CHECK(s(4) == doctest::Approx(5e-4));
  CHECK(s(8) == doctest::Approx(2.5e-4));
  CHECK(s(12) == doctest::Approx(0.0));
  s.kind = schedule::shape::linear;
  CHECK(s(3) == doctest::Approx(3.75e-4));
  CHECK(s(6) == doctest::Approx(3.75e-4));
  CHECK(s(13) == 0.0);
  s.kind = schedule::shape::constant;
  CHECK(s(100) == 5e-4);
}

TEST_CASE("the clip factor is torch's") {
  CHECK(optim::clip_factor(0.5, 1.0) == 1.0F);
  CHECK(optim::clip_factor(4.0, 1.0) == doctest::Approx(1.0 / 4.000001));
  CHECK(optim::clip_factor(4.0, 0.0) == 1.0F);
}

TEST_CASE("the first step of AdamW moves by lr against the sign of the gradient") {
  auto const step = optim::make_step({}, 0.1, 1, 1.0F);
  float w = 1.0F, m = 0.0F, v = 0.0F;
  kernel::adamw_rule(w, m, v, 3.0F, step, [](float x) { return std::sqrt(x); });
  CHECK(w == doctest::Approx(0.9F));
  CHECK(m == doctest::Approx(0.3F));
  CHECK(v == doctest::Approx(0.009F));
}

TEST_CASE("settings that AdamW is not defined for are refused by name") {
  CHECK_THROWS_WITH_AS(optim::check({.beta1 = 1.0}), doctest::Contains("--adam_beta1"), error);
  CHECK_THROWS_WITH_AS(optim::check({.epsilon = 0.0}), doctest::Contains("--adam_eps"), error);
  CHECK_THROWS_WITH_AS(optim::check({.weight_decay = -1.0}), doctest::Contains("--weight_decay"), error);
  CHECK_THROWS_WITH_AS(optim::check({.epsilon = 1e-60}), doctest::Contains("--adam_eps"), error);
}

}  // namespace
