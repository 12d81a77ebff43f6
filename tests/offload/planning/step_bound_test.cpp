// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/offload/planning/planner.hpp>
#include <superoffload/offload/planning/step_bound.hpp>

#include <doctest/doctest.h>

#include "offload/planned_model.hpp"

#include <algorithm>

namespace {

using namespace superoffload;
using namespace superoffload::offload;
using test::h200_machine;
using model = test::planned_model;

TEST_CASE("the bound is the time of the busiest part while the others run") {
  model const m{};
  auto machine = h200_machine();
  machine.link.beside_adam = {1.0, 1.0};
  machine.link.alone = machine.link.both;
  machine.adam.links_busy = machine.adam.links_idle;
  settings const all_on_host{.how = mode::super, .ratio = 1.0, .device_updated_share = 0.0};
  auto const parameters = [&] {
    double sum = 0.0;
    for (auto const& b : make_plan(m.units, m.work, machine, all_on_host).state.buckets) {
      sum += static_cast<double>(b.count);
    }
    return sum;
  }();
  auto const alone = make_plan(m.units, m.work, machine, all_on_host);
  auto const threads = alone.state.workers;
  double const idle = parameters * machine.adam_time(adam_task::update, threads, 0);
  CHECK(alone.bound == doctest::Approx(idle));
  // Each direction copies two bytes a parameter: CPU Adam is slower meanwhile.
  for (auto& seconds : machine.adam.links_busy) { seconds *= 1.5; }
  double const links = parameters * 2.0 / machine.link.both.down;
  auto const beside = make_plan(m.units, m.work, machine, all_on_host);
  double const share = links / beside.bound;
  CHECK(beside.bound == doctest::Approx(idle * (1.0 + 0.5 * share)));
  CHECK(beside.step_time >= beside.bound);
}

TEST_CASE("weights in host memory are updated in place, at that task's rate") {
  model const m{};
  auto machine = h200_machine();
  machine.adam.links_busy = machine.adam.links_idle;
  settings const s{
      .how = mode::super, .ratio = 1.0, .device_updated_share = 0.0, .offload_weights = choice::on};
  auto const p = make_plan(m.units, m.work, machine, s);
  double in_place = 0.0, beside = 0.0;
  for (auto const& b : p.state.buckets) {
    (p.state.weights_offloaded(b) ? in_place : beside) += static_cast<double>(b.count);
  }
  REQUIRE(in_place > beside);
  auto const seconds = [&](double parameters, adam_task task) {
    return parameters * machine.adam_time(task, p.state.workers, 0);
  };
  double passes = 0.0, forward = 0.0;
  for (auto const& t : unit_times(machine, m.work, m.work.levels[p.level])) {
    passes += t.forward + t.backward;
    forward += t.forward;
  }
  CHECK(p.bound == doctest::Approx(passes - forward + seconds(in_place, adam_task::update_in_place)));
  CHECK(p.step_time >= p.bound);
  auto slower = machine;
  slower.adam.links_idle.back() *= 2.0;
  slower.adam.links_busy.back() *= 2.0;
  CHECK(make_plan(m.units, m.work, slower, s).step_time >
        p.step_time + 0.9 * seconds(in_place, adam_task::update_in_place));
}

TEST_CASE("the bound includes work that waits for the check and overlaps the next forward only") {
  model m{};
  auto machine = h200_machine();
  machine.adam.links_busy = machine.adam.links_idle;
  settings s{.how = mode::super, .ratio = 1.0, .device_updated_share = 0.0, .offload_weights = choice::off};
  auto const ahead = make_plan(m.units, m.work, machine, s);
  CHECK(ahead.state.speculates);
  CHECK(ahead.state.adapts);

  double passes = 0.0, forward = 0.0, on_host = 0.0;
  for (auto const& t : unit_times(machine, m.work, m.work.levels[ahead.level])) {
    passes += t.forward + t.backward;
    forward += t.forward;
  }
  for (auto const& b : ahead.state.buckets) { on_host += static_cast<double>(b.count); }
  double const adam = on_host * machine.adam_time(adam_task::update, ahead.state.workers, 0);
  CHECK(ahead.bound == doctest::Approx(std::max(adam, passes)));

  auto const expect_bound = [&](plan const& p, double bound) {
    REQUIRE(p.level == ahead.level);
    CHECK(p.bound == doctest::Approx(bound));
    CHECK(p.step_time >= p.bound * (1.0 - 1e-9));
    CHECK(p.step_time <= 1.1 * p.bound);
  };
  s.speculation = choice::off;
  auto const after = make_plan(m.units, m.work, machine, s);
  CHECK_FALSE(after.state.speculates);
  expect_bound(after, passes - forward + adam);
  m.work.hit_rate = 0.0;
  s.speculation = choice::automatic;
  expect_bound(make_plan(m.units, m.work, machine, s), passes - forward + adam);
  s.speculation = choice::on;
  auto const always_speculating = make_plan(m.units, m.work, machine, s);
  CHECK_FALSE(always_speculating.state.adapts);
  expect_bound(always_speculating, passes - forward + adam);
  m.work.hit_rate = 0.75;
  CHECK(make_plan(m.units, m.work, machine, s).bound ==
        doctest::Approx(0.75 * ahead.bound + 0.25 * (passes - forward + adam)));
  m.work.hit_rate = 1.0;
  expect_bound(
      make_plan(m.units, m.work, machine, {.how = mode::zero, .ratio = 1.0, .offload_weights = choice::off}),
      passes + adam);
  CHECK_THROWS_WITH_AS(check(settings{.how = mode::zero, .speculation = choice::on}),
                       doctest::Contains("--speculation"), error);
}

TEST_CASE("no simulation takes less than the least time of its plan") {
  model m{};
  int mixed = 0;
  for (double const hit_rate : {1.0, 0.5}) {
    m.work.hit_rate = hit_rate;
    for (double const ratio : {0.25, 0.5, 1.0}) {
      for (double const share : {0.0, 0.5, 0.9, 1.0}) {
        for (choice const weights : {choice::off, choice::on}) {
          CAPTURE(hit_rate);
          CAPTURE(ratio);
          CAPTURE(share);
          CAPTURE(weights == choice::on);
          settings const s{.ratio = ratio, .device_updated_share = share, .offload_weights = weights};
          auto const p = make_plan(m.units, m.work, h200_machine(), s);
          if (p.fits) {
            CHECK(p.step_time >= (1.0 - 1e-9) * least_step_time(p, m.work, h200_machine()));
            mixed += p.device_updated > 0.0 && p.host > 0.0 ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(mixed > 10);
}

}  // namespace
