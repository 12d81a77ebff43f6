// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/offload/planning/simulator.hpp>

#include <doctest/doctest.h>

#include "offload/planned_model.hpp"

#include <algorithm>
#include <random>
#include <string>

namespace {

using namespace superoffload;
using namespace superoffload::offload;

/// For a bucket of one parameter, every copy of a gradient or of weights takes a second, and so do every task
/// of CPU Adam and every update by the device. A copy of its state takes five seconds.
machine slow_machine() {
  machine m;
  m.device.bandwidth = 26.0;
  m.link.alone = m.link.both = {2.0, 2.0};
  m.adam.links_idle.fill(1.0);
  m.adam.links_busy.fill(1.0);
  m.adam.one_thread = 1.0;
  return m;
}

/// Units of one bucket of one parameter, 1 s forward and 2 s backward.
schedule of_units(std::vector<tier> const& tiers) {
  schedule s;
  for (std::size_t u = 0; u < tiers.size(); ++u) {
    s.units.push_back({1.0, 2.0});
    s.state.buckets.push_back({.unit = static_cast<int>(u), .count = 1, .where = tiers[u]});
  }
  s.state.pinned_buffers = 100;
  return s;
}

constexpr auto resident = tier::resident, host = tier::host, device_updated = tier::device_updated;

/// Begin and end of an activity of a unit in the step; {-1, -1}: there is none.
std::pair<double, double> span(timeline const& t, activity what, int unit) {
  for (auto const& i : t.intervals) {
    if (i.what == what && i.unit == unit) {
      return {i.begin, i.end};
    }
  }
  return {-1.0, -1.0};
}
using at = std::pair<double, double>;

TEST_CASE("with state on the device, only its update follows the backward") {
  auto m = slow_machine();
  m.device.round_trip = 0.5;
  auto const t = simulate(m, of_units({resident, resident}));
  CHECK(t.step_time == doctest::Approx(2 * 3.0 + 0.5 + 2.0));
  CHECK(t.waits == std::vector<double>{0.0, 0.0});
  CHECK(t.busy[static_cast<std::size_t>(lane::cpu)] == 0.0);
  CHECK(t.busy[static_cast<std::size_t>(lane::compute)] == doctest::Approx(6.0 / 8.5));
  CHECK(span(t, activity::device_update, 1) == at{1.0, 2.0});
  CHECK(span(t, activity::forward, 0) == at{2.0, 3.0});
}

TEST_CASE("with one unit on the host, its gradient, update and weights are all exposed") {
  auto s = of_units({host});
  for (int how = 0; how < 3; ++how) {
    s.state.speculates = how == 1;
    s.state.immediate = how == 2;
    auto const t = simulate(slow_machine(), s);
    CHECK(t.step_time == doctest::Approx(6.0));
    CHECK(t.waits[0] == doctest::Approx(3.0));
    CHECK(t.updated == 1.0);
    CHECK(t.speculated == 0.0);
  }
}

TEST_CASE("with two units on the host, the later one is updated speculatively and committed in idle time") {
  auto s = of_units({host, host});
  auto const t = simulate(slow_machine(), s);
  // After the check: gradient 0, update 0, weights 0, then forwards and backwards; gradient 1 at 3 + 4.
  CHECK(t.step_time == doctest::Approx(9.0));
  CHECK(t.waits[0] == doctest::Approx(3.0));
  CHECK(t.waits[1] == 0.0);
  CHECK(span(t, activity::gradient, 0) == at{0.0, 1.0});
  CHECK(span(t, activity::update, 0) == at{1.0, 2.0});
  CHECK(span(t, activity::weights, 0) == at{2.0, 3.0});
  CHECK(span(t, activity::commit, 1) == at{2.0, 3.0});
  CHECK(span(t, activity::gradient, 1) == at{7.0, 8.0});
  CHECK(span(t, activity::speculate, 1) == at{8.0, 9.0});
  CHECK(span(t, activity::weights, 1) == at{0.0, 1.0});
  CHECK(t.speculated == 1.0);
  CHECK(t.updated == 1.0);
  CHECK(t.committed == 1.0);
  CHECK(t.resent == 0.0);
}

TEST_CASE("a CPU that is never idle commits a bucket's step in one pass with the next") {
  auto m = slow_machine();
  m.adam.links_idle.fill(2.0);
  m.adam.links_busy.fill(2.0);
  m.adam.one_thread = 2.0;
  auto s = of_units(std::vector<tier>(8, host));
  s.units.assign(8, {1.0, 1.0});
  auto const t = simulate(m, s);
  CHECK(t.speculated > 0.0);
  CHECK(t.committed == doctest::Approx(t.speculated));
  CHECK(t.speculated + t.updated == doctest::Approx(8.0));
  s.state.speculates = false;
  auto const plain = simulate(m, s);
  CHECK(plain.step_time > t.step_time);
  CHECK(plain.updated == 8.0);
  CHECK(plain.committed == 0.0);
}

TEST_CASE("a clipped step replaces its speculative updates") {
  auto s = of_units({host, host});
  s.hit_rate = 0.75;
  auto const t = simulate(slow_machine(), s);
  CHECK(t.speculated == doctest::Approx(1.0));
  CHECK(t.resent == doctest::Approx(0.25));
  CHECK(t.committed == doctest::Approx(0.75));
  CHECK(t.updated == doctest::Approx(1.25));
  // If that happens too often, there are no speculative updates.
  s.hit_rate = 0.25;
  auto const rare = simulate(slow_machine(), s);
  CHECK(rare.speculated == 0.0);
  CHECK(rare.updated == doctest::Approx(2.0));
}

TEST_CASE("without a gradient check the CPU and the device update as gradients become final") {
  auto s = of_units({host, host, resident});
  s.state.immediate = true;
  auto const t = simulate(slow_machine(), s);
  CHECK(t.updated == 2.0);
  CHECK(t.speculated == 0.0);
  CHECK(span(t, activity::update, 1).second <= span(t, activity::backward, 0).second);
  CHECK(span(t, activity::device_update, 2).second == span(t, activity::backward, 1).first);
}

TEST_CASE("gradients of offloaded weights are held until the check, without speculative updates") {
  auto s = of_units({host, host, host});
  s.offloaded_weights = {0, 1, 0};
  auto const t = simulate(slow_machine(), s);
  CHECK(t.speculated > 0.0);
  CHECK(t.speculated <= 2.0);
  // Before the check the newest gradient comes first; this one waits for the check.
  CHECK(span(t, activity::speculate, 1) == at{-1.0, -1.0});
  CHECK(span(t, activity::gradient, 1).second <= t.step_time);
  s.offloaded_weights = {1, 1, 1};
  CHECK(simulate(slow_machine(), s).speculated == 0.0);
}

TEST_CASE("waiting for all weights and returning them last, as other systems do, is slower") {
  auto s = of_units({host, host});
  s.state.speculates = false;
  auto const per_unit = simulate(slow_machine(), s);
  s.state.waits_for_all = true;
  auto const all = simulate(slow_machine(), s);
  s.imitates.returns_last = true;
  auto const last = simulate(slow_machine(), s);
  s.imitates.checks_on_host = true;
  auto const checked_late = simulate(slow_machine(), s);
  CHECK(per_unit.step_time == doctest::Approx(9.0));
  // Gradient 1 is there at the check: update 1 from 0 to 1, update 0 to 2, weights to 2 and 3.
  CHECK(all.step_time == doctest::Approx(9.0));
  CHECK(last.step_time == doctest::Approx(10.0));          // weights from 2 to 4
  CHECK(checked_late.step_time == doctest::Approx(11.0));  // both updates after gradient 0
  s.imitates.wire_bytes = 4.0;
  // After the backward of unit 1, gradient 1 takes until 2 and gradient 0 until 4, updates until 6, weights
  // until 10.
  CHECK(simulate(slow_machine(), s).step_time == doctest::Approx(6.0 + 2.0 + 2.0 + 4.0));
}

TEST_CASE(
    "a device-updated bucket is staged ahead, updated after the check and written back in the background") {
  auto s = of_units({device_updated});
  // With one unit, only the write-back is hidden.
  auto const t = simulate(slow_machine(), s);
  CHECK(t.waits[0] == doctest::Approx(5.0 + 2.0));
  CHECK(t.step_time == doctest::Approx(3.0 + 5.0 + 1.0 + 2.0));
  s = of_units({device_updated, resident});
  s.units.assign(2, {10.0, 20.0});
  auto const hidden = simulate(slow_machine(), s);
  CHECK(hidden.step_time == doctest::Approx(60.0 + 2.0));
  CHECK(hidden.waits[0] == 0.0);
  CHECK(span(hidden, activity::state_up, 0) == at{6.0, 11.0});  // for the next step
  CHECK(span(hidden, activity::device_update, 0) == at{0.0, 1.0});
  CHECK(span(hidden, activity::state_down, 0) == at{1.0, 6.0});
  // Two buckets with two staging buffers, or with one.
  s = of_units({device_updated, device_updated});
  s.units.assign(2, {1.0, 20.0});
  CHECK(simulate(slow_machine(), s).step_time == doctest::Approx(42.0 + 2.0));
  s.state.staging_buffers = 1;
  // Down and up again before the second update; the forward of unit 0 runs in that time.
  CHECK(simulate(slow_machine(), s).step_time == doctest::Approx(42.0 + 1.0 + 5.0 + 5.0 + 1.0 - 1.0));
}

TEST_CASE("offloaded weights are copied up twice for every unit but the last, which stays around the turn") {
  auto s = of_units({host, host, host});
  s.offloaded_weights = {1, 1, 1};
  s.units.assign(3, {10.0, 20.0});
  auto const t = simulate(slow_machine(), s);
  int loads = 0;
  for (auto const& i : t.intervals) {
    loads += i.what == activity::unit;
    CHECK(i.what != activity::weights);  // CPU Adam updates them on the host
  }
  CHECK(loads == 5);
  CHECK(t.speculated == 0.0);  // they have no second copy to write to
  CHECK(t.updated == 3.0);
  // The first forward waits for gradient 0, update 0 and the unit itself. Everything else is prefetched.
  CHECK(t.waits[0] == doctest::Approx(3.0));
  CHECK(t.step_time == doctest::Approx(90.0 + 3.0));
  s.units.assign(3, {0.0, 0.0});
  CHECK(simulate(slow_machine(), s).step_time >= 5.0);
  s.weight_buffers = 1;
  s.units.assign(3, {10.0, 20.0});
  // With one buffer, every visit but the turn's second waits for its unit.
  CHECK(simulate(slow_machine(), s).step_time == doctest::Approx(90.0 + 2.0 + 5.0));
}

TEST_CASE("offloaded gradients without a free device buffer delay the backward") {
  auto s = of_units({host, host, host});
  auto m = slow_machine();
  m.link.alone.down = m.link.both.down = 0.5;  // 4 s a gradient
  double const ample = simulate(m, s).step_time;
  s.offloaded_gradients = {1, 1, 1};
  s.gradient_buffers = 3;
  CHECK(simulate(m, s).step_time == doctest::Approx(ample));
  s.gradient_buffers = 2;
  double const tight = simulate(m, s).step_time;
  CHECK(tight > ample);
  s.gradient_buffers = 1;
  CHECK(simulate(m, s).step_time > tight);
  // Gradients that stay do not use the buffers.
  s.offloaded_gradients = {1, 1, 0};
  s.gradient_buffers = 2;
  CHECK(simulate(m, s).step_time == doctest::Approx(ample));
  s.gradient_buffers = 1;
  CHECK(simulate(m, s).step_time > ample);
  // Resident state needs its gradients until the check, which then never comes.
  s = of_units({resident, resident});
  s.offloaded_gradients = {1, 1};
  s.gradient_buffers = 1;
  try {
    static_cast<void>(simulate(m, s));
    FAIL("the simulation should have found a deadlock");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::cannot_fit);
    CHECK(std::string{e.what()}.find("too few for gradients") != std::string::npos);
  }
}

TEST_CASE("few pinned buffers limit speculative updates, but every step ends") {
  auto s = of_units(std::vector<tier>(12, host));
  double speculated = 100.0;
  for (int pinned_buffers : {100, 8, 6, 4, 3, 2}) {
    s.state.pinned_buffers = pinned_buffers;
    auto const t = simulate(slow_machine(), s);
    CAPTURE(pinned_buffers);
    CHECK(t.speculated <= speculated);
    CHECK(t.speculated + t.updated == doctest::Approx(12.0));
    CHECK(t.committed == doctest::Approx(t.speculated));
    speculated = t.speculated;
  }
  CHECK(speculated == 1.0);
}

TEST_CASE("with micro-batches, gradients leave after the last one and the first one waits for weights") {
  auto s = of_units({host, host});
  s.micro_batches = 3;
  auto const t = simulate(slow_machine(), s);
  CHECK(t.step_time == doctest::Approx(3.0 + 3 * 6.0));
  int gradients = 0;
  for (auto const& i : t.intervals) { gradients += i.what == activity::gradient; }
  CHECK(gradients == 2);
}

TEST_CASE("copies and CPU Adam slow each other down") {
  auto m = slow_machine();
  auto s = of_units({host});
  m.link.latency = 0.25;
  CHECK(simulate(m, s).step_time == doctest::Approx(6.5));
  m.link.latency = 0.0;
  m.adam.one_thread = 6.0;
  s.state.workers = 2;  // 3 s
  CHECK(simulate(m, s).step_time == doctest::Approx(8.0));
  s.state.workers = 12;  // memory is the limit
  CHECK(simulate(m, s).step_time == doctest::Approx(6.0));
}

TEST_CASE("sums on the host go down after each backward but the last and come up before each but the first") {
  auto s = of_units({host, host});
  s.state.immediate = true;
  s.micro_batches = 2;
  auto const m = slow_machine();
  // Gradient, update and weights of unit 0 are exposed, 3 s, then two forwards and backwards.
  CHECK(simulate(m, s).step_time == doctest::Approx(3.0 + 12.0));
  s.offloaded_gradients = {1, 1};  // two seconds each way
  auto const t = simulate(m, s);
  CHECK(span(t, activity::sum_down, 1) == at{7.0, 9.0});
  CHECK(span(t, activity::sum_down, 0) == at{9.0, 11.0});
  CHECK(span(t, activity::sum_up, 1) == at{11.0, 13.0});  // not before the second backward
  CHECK(span(t, activity::sum_up, 0) == at{13.0, 15.0});
  CHECK(t.step_time == doctest::Approx(17.0));
  CHECK(t.waits[1] == doctest::Approx(2.0));
  CHECK(t.waits[0] == doctest::Approx(3.0));
  // With one buffer, its content must leave first: a sum in 2 s, a final gradient in 1 s.
  s.gradient_buffers = 1;
  auto const narrow = simulate(m, s);
  CHECK(narrow.step_time == doctest::Approx(22.0));
  CHECK(narrow.waits[1] == doctest::Approx(2.0));
  CHECK(narrow.waits[0] == doctest::Approx(3.0 + 2.0 + 1.0 + 2.0));
  // A gradient that stays needs neither.
  s.offloaded_gradients = {0, 1};
  auto const half = simulate(m, s);
  CHECK(half.step_time == doctest::Approx(17.0));
  CHECK(span(half, activity::sum_up, 0) == at{-1.0, -1.0});
}

/// The same for several ranks: every byte of a collective takes a second.
machine slow_ranks() {
  auto m = slow_machine();
  m.peers.all_gather = m.peers.reduce_scatter = 1.0;
  return m;
}
schedule of_ranks(std::vector<tier> const& tiers, double bytes) {
  auto s = of_units(tiers);
  s.with_ranks.units.assign(tiers.size(), {bytes, bytes});
  return s;
}

TEST_CASE("collectives are hidden, except for the first unit's weights and the last one's gradient") {
  auto m = slow_ranks();
  auto const s = of_ranks({resident, resident}, 0.5);
  auto const t = simulate(m, s);
  CHECK(span(t, activity::gather, 0) == at{2.0, 2.5});  // after the device's updates
  CHECK(span(t, activity::gather, 1) == at{2.5, 3.0});
  CHECK(span(t, activity::forward, 0) == at{2.5, 3.5});
  CHECK(span(t, activity::forward, 1) == at{3.5, 4.5});
  CHECK(span(t, activity::reduce, 1) == at{6.5, 7.0});
  CHECK(span(t, activity::backward, 0) == at{6.5, 8.5});
  CHECK(span(t, activity::reduce, 0) == at{8.5, 9.0});
  CHECK(t.step_time == doctest::Approx(2.0 + 6.0 + 2 * 0.5));
  CHECK(t.waits[0] == doctest::Approx(1.0));
  CHECK(t.waits[1] == 0.0);
  CHECK(t.waited_for_ranks == doctest::Approx(1.0));
  CHECK(t.busy[static_cast<std::size_t>(lane::collective)] == doctest::Approx(2.0 / 9.0));
  m.peers.latency = 0.25;
  CHECK(simulate(m, s).step_time == doctest::Approx(2.0 + 6.0 + 2 * 0.75));
  m.peers.reduce_scatter = 0.5;
  CHECK(simulate(m, s).step_time == doctest::Approx(2.0 + 6.0 + 0.75 + 1.25));
}

TEST_CASE("collectives that are slower than compute delay every pass") {
  auto const t = simulate(slow_ranks(), of_ranks({resident, resident}, 3.0));
  CHECK(span(t, activity::gather, 1) == at{5.0, 8.0});
  CHECK(span(t, activity::forward, 1) == at{8.0, 9.0});
  CHECK(span(t, activity::reduce, 1) == at{11.0, 14.0});
  CHECK(span(t, activity::reduce, 0) == at{14.0, 17.0});
  CHECK(t.step_time == doctest::Approx(17.0));
  CHECK(t.waits[0] == doctest::Approx(3.0 + 4.0));
  CHECK(t.waits[1] == doctest::Approx(2.0));
  CHECK(t.waited_for_ranks == doctest::Approx(9.0));
}

TEST_CASE("collectives and compute slow each other down") {
  auto m = slow_ranks();
  m.peers.beside_compute = m.peers.compute_beside = 0.5;
  auto const t = simulate(m, of_ranks({resident, resident}, 0.5));
  CHECK(span(t, activity::gather, 1) == at{2.5, 3.5});
  CHECK(span(t, activity::forward, 0) == at{2.5, 4.0});
  CHECK(span(t, activity::reduce, 1) == at{7.0, 8.0});
  CHECK(span(t, activity::backward, 0) == at{7.0, 9.5});
  CHECK(t.step_time == doctest::Approx(10.0));
}

TEST_CASE(
    "with several ranks, gradients leave one unit later, and weights are gathered when a shard is back") {
  auto const t = simulate(slow_ranks(), of_ranks({host, host}, 0.5));
  // The last backward ends half a second before the check, and gradient 1 begins to leave.
  CHECK(span(t, activity::update, 1) == at{0.5, 1.5});
  CHECK(span(t, activity::gradient, 0) == at{0.5, 1.5});
  CHECK(span(t, activity::update, 0) == at{1.5, 2.5});
  CHECK(span(t, activity::weights, 0) == at{2.5, 3.5});
  CHECK(span(t, activity::gather, 0) == at{3.5, 4.0});
  CHECK(span(t, activity::forward, 0) == at{4.0, 5.0});
  CHECK(t.step_time == doctest::Approx(10.5));
  CHECK(t.updated == 2.0);
  CHECK(t.waits[0] == doctest::Approx(4.5));
  CHECK(t.waited_for_ranks == doctest::Approx(1.0));  // the rest is the shard's update
}

TEST_CASE("with several ranks, a reduction waits for a free gradient buffer, and later passes wait for it") {
  auto m = slow_ranks();
  m.link.alone.down = m.link.both.down = 0.125;  // 8 s a gradient
  auto s = of_ranks({host, host, host}, 0.5);
  s.state.immediate = true;
  s.state.pinned_buffers = 8;
  auto const ample = simulate(m, s);
  s.offloaded_gradients = {2, 2, 2};
  s.gradient_buffers = 3;
  CHECK(simulate(m, s).step_time == doctest::Approx(ample.step_time));
  s.gradient_buffers = 1;
  auto const t = simulate(m, s);
  CHECK(t.step_time > ample.step_time);
  CHECK(t.updated == 3.0);
  // Each is reduced when the one before it has come down.
  auto const down_2 = span(t, activity::gradient, 2), down_1 = span(t, activity::gradient, 1);
  CHECK(span(t, activity::reduce, 1).first == doctest::Approx(down_2.second));
  CHECK(span(t, activity::reduce, 0).first == doctest::Approx(down_1.second));
  CHECK(span(t, activity::backward, 0).first == doctest::Approx(down_2.second));
  CHECK(t.waited_for_ranks <= ample.waited_for_ranks + 1e-9);  // the wait is for the link
  s.offloaded_gradients = {2, 0, 0};                           // a gradient that stays needs no buffer
  CHECK(simulate(m, s).step_time == doctest::Approx(ample.step_time));
}

TEST_CASE("with several ranks, a pass begins when the next unit's shard is updated") {
  auto m = slow_ranks();
  m.adam.links_idle.fill(3.0);
  m.adam.links_busy.fill(3.0);
  m.adam.one_thread = 3.0;
  auto const t = simulate(m, of_ranks({resident, host}, 0.5));
  CHECK(span(t, activity::gather, 0) == at{1.0, 1.5});
  CHECK(span(t, activity::update, 1) == at{0.5, 3.5});
  CHECK(span(t, activity::forward, 0) == at{3.5, 4.5});
  CHECK(span(t, activity::gather, 1) == at{4.5, 5.0});
  CHECK(t.step_time == doctest::Approx(10.5));
  CHECK(t.waits[0] == doctest::Approx(3.0));
  CHECK(t.waits[1] == doctest::Approx(0.5));
  CHECK(t.waited_for_ranks == doctest::Approx(1.0));
}

TEST_CASE("a schedule of several ranks on a machine without rates of collectives is refused") {
  CHECK_THROWS_AS(static_cast<void>(simulate(slow_machine(), of_ranks({resident}, 1.0))), error);
}

/// A random configuration of a model with realistic proportions on an H200.
schedule random_schedule(std::mt19937& random) {
  auto const up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  schedule s;
  int const units = 3 + up_to(10);
  int const buckets = 1 + up_to(6);
  tier const some[] = {resident, host, host, device_updated};
  for (int u = 0; u < units; ++u) {
    s.units.push_back({0.005 * (1 + up_to(3)), 0.015 * (1 + up_to(2))});
    for (int b = 0; b < buckets; ++b) {
      s.state.buckets.push_back({.unit = u, .offset = b << 24, .count = 1 << 24, .where = some[up_to(4)]});
    }
  }
  s.micro_batches = 1 + up_to(2);
  s.state.speculates = up_to(3) > 0;
  s.state.immediate = up_to(4) == 0;
  s.state.pinned_buffers = 4 + up_to(60);
  s.state.staging_buffers = 1 + up_to(4);
  s.state.workers = 15;
  s.state.waits_for_all = up_to(4) == 0;
  if (s.state.immediate) {
    s.gradient_buffers = 1 + up_to(3);
    for (int u = 0; u < units; ++u) { s.offloaded_gradients.push_back(up_to(2) * (buckets << 24)); }
  }
  return s;
}
/// The same for several ranks, with collectives that are shorter or longer than passes.
schedule random_ranks(std::mt19937& random) {
  auto s = random_schedule(random);
  if (s.micro_batches > 1) {
    s.offloaded_gradients.clear();
  }
  for (std::size_t u = 0; u < s.units.size(); ++u) {
    s.with_ranks.units.push_back(
        {1e6 * static_cast<double>(1 + random() % 4000), random() % 8 == 0 ? 0.0 : 2e9});
  }
  auto& ends = s.with_ranks.units;
  ends.front().gradient *= 2.0;  // in a wider type
  ends.back().gradient *= 2.0;
  s.with_ranks.tied_to_last = random() % 2 == 0 ? 0 : -1;
  // Frozen units have no state.
  std::erase_if(s.state.buckets, [&](bucket const& b) {
    return s.with_ranks.units[static_cast<std::size_t>(b.unit)].gradient == 0.0;
  });
  return s;
}
machine random_machine() {
  auto m = test::h200_machine();
  m.link.beside_adam = {0.8, 0.7};
  m.peers.all_gather = 330e9;
  m.peers.reduce_scatter = 260e9;
  m.peers.latency = 35e-6;
  return m;
}

TEST_CASE(
    "in random configurations every bucket is updated once a step, and no lane is busy for longer than a "
    "step") {
  std::mt19937 random{1};
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    auto s = i % 2 == 0 ? random_schedule(random) : random_ranks(random);
    s.hit_rate = i % 3 == 0 ? 1.0 : i % 3 == 1 ? 0.0 : 0.6;
    auto const m = random_machine();
    auto const t = simulate(m, s);
    auto const on_host = static_cast<double>(std::count_if(s.state.buckets.begin(), s.state.buckets.end(),
                                                           [](auto const& b) { return b.where == host; }));
    CHECK(t.speculated - t.resent + t.updated == doctest::Approx(on_host).epsilon(0.05));
    double compute = 0.0, adam = 0.0;
    for (auto const& u : s.units) { compute += s.micro_batches * (u.forward + u.backward); }
    for (auto const& b : s.state.buckets) {
      adam += b.where == host ? 0.0 : 26.0 * (1 << 24) / m.device.bandwidth;
    }
    CHECK(t.step_time >= (compute + adam) * (1.0 - 1e-9));
    CHECK(t.busy[0] * t.step_time == doctest::Approx(compute).epsilon(0.02));
    for (auto const share : t.busy) { CHECK(share <= 1.0 + 1e-9); }
    for (auto const wait : t.waits) { CHECK(wait >= -1e-9); }
    double last[lanes] = {};
    for (auto const& x : t.intervals) {
      CHECK(x.begin <= x.end);
      auto const l = static_cast<std::size_t>(x.where);
      CHECK(x.begin >= last[l] - 1e-9);  // one thing at a time
      last[l] = x.end;
    }
  }
}

TEST_CASE("with every rate doubled a step takes half the time") {
  std::mt19937 random{2};
  for (int i = 0; i < 50; ++i) {
    auto s = random_schedule(random);
    auto m = random_machine();
    double const once = simulate(m, s).step_time;
    m.device.bandwidth *= 2;
    m.device.round_trip /= 2;
    m.link.latency /= 2;
    for (auto* rates : {&m.link.alone, &m.link.both}) { *rates = {2 * rates->down, 2 * rates->up}; }
    for (auto* seconds : {&m.adam.links_idle, &m.adam.links_busy}) {
      for (auto& x : *seconds) { x /= 2; }
    }
    m.adam.one_thread /= 2;
    for (auto& u : s.units) { u = {u.forward / 2, u.backward / 2}; }
    CHECK(simulate(m, s).step_time == doctest::Approx(once / 2).epsilon(1e-6));
  }
}

TEST_CASE("a faster lane makes no step slower by more than one task and one copy") {
  std::mt19937 random{3};
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    auto const s = random_schedule(random);
    auto const m = random_machine();
    double const before = simulate(m, s).step_time;
    // A faster lane may change the order: an early bucket may block one that is due.
    double const task = (1 << 24) * m.adam.links_busy[static_cast<std::size_t>(adam_task::commit_speculate)];
    double const copy = (1 << 24) * 10.0 / m.link.both.up;
    auto const no_slower = [&](machine const& faster) {
      CHECK(simulate(faster, s).step_time <= before + task + copy);
    };
    auto link = m;
    link.link.alone = {80e9, 80e9};
    link.link.both = {70e9, 70e9};
    no_slower(link);
    auto cpu = m;
    for (auto* seconds : {&cpu.adam.links_idle, &cpu.adam.links_busy}) {
      for (auto& x : *seconds) { x *= 0.7; }
    }
    cpu.adam.one_thread *= 0.7;
    no_slower(cpu);
    auto device = m;
    device.device.bandwidth *= 2;
    no_slower(device);
  }
}

TEST_CASE("activations leave after the forward of their block, and come back when their buffer is free") {
  auto s = of_units(std::vector<tier>(6, resident));  // four blocks, and the ends of the model
  auto const waits = [&](int buffers, std::vector<double> bytes) {
    s.offloaded_activations = std::move(bytes);
    s.activation_buffers = buffers;
    auto t = simulate(slow_machine(), s);
    CHECK(t.step_time == doctest::Approx(6.0 + 6 * 3.0 + t.waits[1] + t.waits[2] + t.waits[3] + t.waits[4]));
    return t;
  };
  // With two buffers, nothing computes while a block's activations come back.
  auto const two = waits(2, {0.0, 2.0, 2.0, 0.0, 0.0, 0.0});
  CHECK(span(two, activity::forward, 1) == at{7.0, 8.0});
  CHECK(span(two, activity::activations_down, 1) == at{8.0, 9.0});
  CHECK(span(two, activity::activations_down, 2) == at{9.0, 10.0});
  CHECK(span(two, activity::forward, 4) == at{10.0, 11.0});
  CHECK(span(two, activity::backward, 4) == at{14.0, 16.0});
  CHECK(span(two, activity::activations_up, 2) == at{16.0, 17.0});
  CHECK(span(two, activity::backward, 3) == at{17.0, 19.0});
  CHECK(span(two, activity::activations_up, 1) == at{19.0, 20.0});
  CHECK(span(two, activity::backward, 2) == at{20.0, 22.0});
  CHECK(two.step_time == doctest::Approx(26.0));
  // With three, the copy back runs beside a backward.
  auto const three = waits(3, {0.0, 2.0, 0.0, 0.0, 0.0, 0.0});
  CHECK(span(three, activity::activations_up, 1) == at{16.0, 17.0});
  CHECK(three.step_time == doctest::Approx(24.0));
  // Copies of three seconds hold up the block that takes the buffer, and the backward that reads it.
  auto const slow = waits(3, {0.0, 6.0, 0.0, 0.0, 0.0, 0.0});
  CHECK(span(slow, activity::activations_down, 1) == at{8.0, 11.0});
  CHECK(span(slow, activity::forward, 4) == at{11.0, 12.0});
  CHECK(span(slow, activity::activations_up, 1) == at{17.0, 20.0});
  CHECK(span(slow, activity::backward, 2) == at{20.0, 22.0});
  CHECK(slow.step_time == doctest::Approx(26.0));
  // Each micro-batch begins anew.
  s.micro_batches = 3;
  CHECK(simulate(slow_machine(), s).step_time == doctest::Approx(6.0 + 3 * (6 * 3.0 + 2.0)));
}

}  // namespace
