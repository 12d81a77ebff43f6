// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/optim/adamw.hpp>
#include <superoffload/optim/clip.hpp>
#include <superoffload/optim/deepspeed_schedule.hpp>
#include <superoffload/optim/schedule.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {

using namespace superoffload;
using optim::schedule;

TEST_CASE("schedules give the rates of transformers: warm-up from 0, then constant, linear or cosine") {
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

TEST_CASE("restarts, powers and a least rate are those of transformers") {
  using shape = schedule::shape;
  schedule const usual{.peak = 5e-4, .warmup_steps = 3, .total_steps = 13};
  auto const with = [&](shape kind, double minimum, double cycles, double power) {
    auto s = usual;
    s.kind = kind;
    s.minimum = minimum;
    s.cycles = cycles;
    s.power = power;
    return s;
  };
  struct {
    schedule rate;
    std::vector<double> rates;  // of the functions in transformers 5.23's optimization.py, from step 3 on
  } const cases[] = {
      {with(shape::cosine_with_restarts, 0.0, 2.0, 1.0),
       {5e-4, 0.0004522542485937369, 0.00032725424859373687, 0.00017274575140626317, 4.7745751406263163e-05,
        5e-4, 0.0004522542485937369, 0.0003272542485937369, 0.0001727457514062631, 4.7745751406263163e-05,
        0.0, 0.0}},
      {with(shape::polynomial, 1e-5, 1.0, 2.0),
       {5e-4, 0.0004069, 0.0003236, 0.0002501, 0.0001864, 0.0001325, 8.84e-05, 5.41e-05, 2.96e-05, 1.49e-05,
        1e-5, 1e-5}},
      {with(shape::cosine, 5e-5, 1.0, 1.0),
       {5e-4, 0.00048898771617, 0.00045702882373, 0.00040725168176, 0.00034452882373, 0.000275,
        0.00020547117627, 0.00014274831824, 9.297117627e-05, 6.101228383e-05, 5e-5}},
      {with(shape::linear, 1e-4, 1.0, 1.0),
       {5e-4, 4.6e-4, 4.2e-4, 3.8e-4, 3.4e-4, 3e-4, 2.6e-4, 2.2e-4, 1.8e-4, 1.4e-4, 1e-4, 1e-4}},
  };
  for (auto const& c : cases) {
    CAPTURE(name_of(c.rate.kind));
    CHECK(c.rate(0) == 0.0);
    CHECK(c.rate(2) == doctest::Approx(2.0 / 3.0 * 5e-4));
    for (std::size_t i = 0; i < c.rates.size(); ++i) {
      CAPTURE(i);
      CHECK(c.rate(3 + static_cast<std::int64_t>(i)) == doctest::Approx(c.rates[i]).epsilon(1e-9));
    }
  }
}

TEST_CASE("DeepSpeed's schedules give the rates of DeepSpeed's schedulers") {
  using d = optim::deepspeed_schedule;
  struct {
    d schedule;
    std::vector<double> rates;  // of lr_schedules.py, DeepSpeed of August 2026, one step() after each rate
  } const cases[] = {
      {{.kind = d::rule::warmup, .begin = 1e-4, .warmup_steps = 4},
       {0.0001, 0.0001, 0.00055, 0.0008132331253245204, 0.001, 0.001, 0.001}},
      {{.kind = d::rule::warmup, .warmup = d::rise::linear, .peak = 2e-3, .warmup_steps = 4},
       {0.0, 0.0, 0.0005, 0.001, 0.0015, 0.002, 0.002}},
      {{.kind = d::rule::warmup_decay,
        .warmup = d::rise::linear,
        .begin = 1e-4,
        .warmup_steps = 3,
        .total_steps = 10},
       {0.0001, 0.0001, 0.0004, 0.0007, 0.001, 0.0008714285714285714, 0.0007428571428571429,
        0.0006142857142857142, 0.0004857142857142857, 0.0003571428571428571, 0.00022857142857142857, 0.0001}},
      {{.kind = d::rule::warmup_decay, .warmup_steps = 1, .total_steps = 10},
       {0.0, 0.0, 0.001, 0.001, 0.000875, 0.00075, 0.000625, 0.0005, 0.000375, 0.00025, 0.000125, 0.0, 0.0}},
      {{.kind = d::rule::warmup_cosine, .begin = 0.1, .end = 0.01, .warmup_steps = 3, .total_steps = 10},
       {0.0, 0.0001, 0.0006678367782143116, 0.001, 0.0009509795896116974, 0.0008136274519200731,
        0.0006151478623083756, 0.00039485213769162444, 0.00019637254807992693, 5.902041038830258e-05, 1e-05,
        1e-05}},
      {{.kind = d::rule::warmup_cosine, .warmup = d::rise::linear, .warmup_steps = 4, .total_steps = 8},
       {0.0, 0.0, 0.00025, 0.0005, 0.00075, 0.0008535680352542144, 0.00050005, 0.0001465319647457856, 1e-07,
        1e-07}},
  };
  for (auto const& c : cases) {
    for (std::size_t k = 0; k < c.rates.size(); ++k) {
      CAPTURE(static_cast<int>(c.schedule.kind));
      CAPTURE(k);
      CHECK(c.schedule(static_cast<std::int64_t>(k)) ==
            doctest::Approx(c.rates[k]).epsilon(1e-12).scale(1e-3));
    }
  }
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

TEST_CASE("settings for which AdamW is not defined are refused by name") {
  CHECK_THROWS_WITH_AS(optim::check({.beta1 = 1.0}), doctest::Contains("--adam_beta1"), error);
  CHECK_THROWS_WITH_AS(optim::check({.epsilon = 0.0}), doctest::Contains("--adam_eps"), error);
  CHECK_THROWS_WITH_AS(optim::check({.weight_decay = -1.0}), doctest::Contains("--weight_decay"), error);
  CHECK_THROWS_WITH_AS(optim::check({.epsilon = 1e-60}), doctest::Contains("--adam_eps"), error);
}

}  // namespace
