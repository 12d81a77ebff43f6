// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/offload/planning/planner.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/zero/offloaded.hpp>
#include <superoffload/zero/resident.hpp>

#include <doctest/doctest.h>

#include "offload/planned_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace {

using namespace superoffload;
using namespace superoffload::offload;

using test::gib;
using test::h200_machine;
using model = test::planned_model;

bool all(plan const& p, tier where) {
  return std::all_of(p.state.buckets.begin(), p.state.buckets.end(),
                     [&](auto const& b) { return b.where == where; });
}

TEST_CASE("state that fits the device stays there") {
  model const m{8};
  auto const p = make_plan(m.units, m.work, h200_machine(), {});
  CHECK(p.fits);
  CHECK(p.resident == 1.0);
  CHECK(all(p, tier::resident));
  CHECK(p.recompute == "none");
  CHECK(p.on_host.state == 0);
  CHECK(p.step_time == doctest::Approx(p.bound).epsilon(0.001));
  CHECK(p.tokens_per_second == doctest::Approx(8192.0 / p.step_time));
  CHECK(p.model_flops_per_second == doctest::Approx(m.work.model_flops / p.step_time));
}

TEST_CASE("a plan within a limit is the one without, and beyond it there is none") {
  model const m{};
  for (auto const& s :
       {settings{}, settings{.how = mode::super, .ratio = 0.9}, settings{.how = mode::zero}}) {
    auto const p = make_plan(m.units, m.work, h200_machine(), s);
    REQUIRE(p.fits);
    auto const within = make_plan(m.units, m.work, h200_machine(), s, 1.01 * p.step_time);
    CHECK(within.step_time == p.step_time);
    CHECK(within.level == p.level);
    CHECK(within.on_device.total() == p.on_device.total());
    CHECK(within.on_host.total() == p.on_host.total());
    CHECK_FALSE(make_plan(m.units, m.work, h200_machine(), s, 0.1 * p.step_time).fits);
  }
}

TEST_CASE("grouped GEMMs have their own rate, which a machine for a model with experts must have") {
  model m{8};
  auto machine = h200_machine();
  auto const dense = make_plan(m.units, m.work, machine, {});
  constexpr double seconds = 5e-3;
  for (auto& u : m.work.units) { u.forward.grouped = u.backward.grouped = seconds * 300e12; }
  CHECK_THROWS_WITH_AS(make_plan(m.units, m.work, machine, {}),
                       doctest::Contains("grouped_gemms_tflops is missing"), error);
  machine.device.grouped_gemms = 300e12;
  CHECK(make_plan(m.units, m.work, machine, {}).step_time ==
        doctest::Approx(dense.step_time + 2.0 * seconds * static_cast<double>(m.work.units.size())));
}

TEST_CASE("the device is filled first, the rest goes to the host, and neither memory is exceeded") {
  model const m{};
  for (std::size_t const device : {140, 100, 80, 64}) {
    auto machine = h200_machine();
    machine.device.memory = device * gib;
    auto const p = make_plan(m.units, m.work, machine, {});
    CAPTURE(device);
    REQUIRE(p.fits);
    CHECK(p.on_device.total() <= (device - 2) * gib);
    CHECK(p.on_host.total() <= 121 * gib);
    CHECK(p.device_available == (device - 2) * gib);
    CHECK(p.resident + p.host + p.device_updated == doctest::Approx(1.0));
    if (p.resident < 1.0) {
      // Apart from the staging and pinned buffers, hardly another bucket would fit.
      auto const bucket = static_cast<std::size_t>(p.state.largest(tier::host)) * 10;
      CHECK(p.on_device.total() - p.on_device.staging_buffers + 6 * bucket >= (device - 2) * gib);
    }
    CHECK(p.step_time >= p.bound * (1.0 - 1e-9));
  }
}

TEST_CASE("more memory of the device or of the host never makes a plan slower") {
  model const m{};
  double before = 1e9;
  for (std::size_t const device : {56, 64, 80, 100, 140, 200}) {
    auto machine = h200_machine();
    machine.device.memory = device * gib;
    double const time = make_plan(m.units, m.work, machine, {}).step_time;
    CAPTURE(device);
    CHECK(time <= before * 1.005);
    before = time;
  }
  before = 1e9;
  for (std::size_t const host : {85, 95, 105, 125, 250}) {
    auto machine = h200_machine();
    machine.host.memory = host * gib;
    auto const p = make_plan(m.units, m.work, machine, {.how = mode::super, .ratio = 1.0});
    CAPTURE(host);
    REQUIRE(p.fits);
    CHECK(p.step_time <= before * 1.01);
    before = p.step_time;
  }
}

TEST_CASE("the plan's bytes are those that state and store take") {
  using state = placed_state<cpu::device, bfloat16>;
  using store = zero::resident_store<cpu::device, bfloat16>;
  model const m{4, 1, 1024, 2816, 32000};
  settings const some[] = {{.how = mode::none},
                           {.how = mode::super, .ratio = 1.0},
                           {.how = mode::super, .ratio = 0.6, .device_updated_share = 0.5},
                           {.how = mode::zero, .ratio = 0.9, .bucket_bytes = 8 << 20}};
  for (auto const& s : some) {
    for (int const micro_batches : {1, 3}) {
      auto w = m.work;
      w.micro_batches = micro_batches;
      auto const p = make_plan(m.units, w, h200_machine(), s);
      REQUIRE(p.fits);
      auto const held = store::bytes(m.units, {.accumulates = micro_batches > 1}, nullptr);
      CHECK(p.on_device.weights == held.weights);
      CHECK(p.on_device.gradients == held.gradients);
      auto const placed = state::bytes(m.units, p.state);
      CHECK(p.on_device.state + p.on_device.staging_buffers + p.on_device.workspaces - w.workspaces ==
            placed.device);
      CHECK(p.on_host.total() == placed.host);
      // All but the state that CPU Adam updates.
      CHECK(p.pinned == placed.host - host_state<cpu::device, bfloat16>::bytes(p.state));
    }
  }
}

TEST_CASE("state of fewer bytes is kept twice where that is faster and fits the host") {
  model const m{};
  settings s{.how = mode::super, .ratio = 1.0, .device_updated_share = 0.0};
  s.state = state_format::int8;
  auto const planned = [&](machine const& on) { return make_plan(m.units, m.work, on, s); };
  auto const twice = planned(h200_machine());
  REQUIRE(twice.fits);
  CHECK(twice.state.double_buffered);
  CHECK(twice.step.speculated > 0.0);
  CHECK(twice.step.committed == 0.0);
  CHECK(twice.on_host.state == bytes_of(twice.state, 2).whole);
  auto little = h200_machine();
  little.host.memory = little.host.reserve + twice.on_host.total() - twice.on_host.state / 4;
  auto const once = planned(little);
  REQUIRE(once.fits);
  CHECK_FALSE(once.state.double_buffered);
  CHECK(once.step.committed > 0.0);
  CHECK(once.on_host.state == twice.on_host.state / 2);
  CHECK(twice.step_time < once.step_time);
  s.state = state_format::float32;
  CHECK_FALSE(planned(h200_machine()).state.double_buffered);
  s.state = state_format::int8;
  auto unchecked = m.work;
  unchecked.checks_gradient = false;
  CHECK_FALSE(make_plan(m.units, unchecked, h200_machine(), s).state.double_buffered);
}

TEST_CASE("a plan obeys the settings") {
  model const m{};
  auto const plan_with = [&](settings const& s) { return make_plan(m.units, m.work, h200_machine(), s); };
  auto const host_only = plan_with({.how = mode::super, .ratio = 1.0, .device_updated_share = 0.0});
  CHECK(all(host_only, tier::host));
  CHECK(host_only.state.speculates);
  CHECK(host_only.step.speculated > 0.0);
  auto const part = plan_with({.how = mode::super, .ratio = 0.72, .device_updated_share = 0.25});
  CHECK(part.resident == doctest::Approx(0.28).epsilon(0.02));
  CHECK(part.device_updated / (part.device_updated + part.host) == doctest::Approx(0.25).epsilon(0.05));
  auto const zero = plan_with({.how = mode::zero, .ratio = 1.0});
  CHECK(all(zero, tier::host));
  CHECK_FALSE(zero.state.speculates);
  CHECK(zero.state.waits_for_all);
  CHECK(zero.step.speculated == 0.0);
  CHECK(zero.step_time > host_only.step_time);
  CHECK(all(plan_with({.how = mode::none}), tier::resident));
  CHECK(plan_with({.cpuadam_cores_perc = 0.5}).state.workers == 8);
  for (auto const& b : plan_with({.bucket_bytes = 4 << 20}).state.buckets) { CHECK(b.count <= 2 << 20); }
  auto work = m.work;
  work.checks_gradient = false;
  auto const immediate =
      make_plan(m.units, work, h200_machine(), {.ratio = 1.0, .device_updated_share = 0.0});
  CHECK(immediate.state.immediate);
  CHECK(immediate.step_time < host_only.step_time * 1.01);
}

TEST_CASE("CPU and device share the updates of state off the device if both together are faster") {
  model const m{};
  auto const both = make_plan(m.units, m.work, h200_machine(), {.how = mode::super, .ratio = 1.0});
  auto const host = make_plan(m.units, m.work, h200_machine(),
                              {.how = mode::super, .ratio = 1.0, .device_updated_share = 0.0});
  auto const device_updated = make_plan(m.units, m.work, h200_machine(),
                                        {.how = mode::super, .ratio = 1.0, .device_updated_share = 1.0});
  CHECK(both.device_updated > 0.1);
  CHECK(both.host > 0.3);
  CHECK(both.step_time < 0.9 * host.step_time);
  CHECK(both.step_time < 0.9 * device_updated.step_time);
  // With slow cores, the device updates more.
  auto slow = h200_machine();
  for (auto* seconds : {&slow.adam.links_idle, &slow.adam.links_busy}) {
    for (auto& x : *seconds) { x *= 4.0; }
  }
  auto const lazy = make_plan(m.units, m.work, slow, {.how = mode::super, .ratio = 1.0});
  CHECK(lazy.device_updated > both.device_updated);
}

TEST_CASE("if every step is clipped there are no speculative updates, and the plan is slower") {
  model const m{};
  settings const s{.how = mode::super, .ratio = 1.0, .device_updated_share = 0.0};
  auto clipped = m.work;
  clipped.hit_rate = 0.0;
  auto const never = make_plan(m.units, m.work, h200_machine(), s);
  auto const always = make_plan(m.units, clipped, h200_machine(), s);
  CHECK(never.step.speculated > 0.0);
  CHECK(always.step.speculated == 0.0);
  CHECK(always.step_time > 1.1 * never.step_time);
}

TEST_CASE("weights are offloaded if they do not fit or on demand, and only then") {
  model const m{};
  auto small = h200_machine();
  small.device.memory = 24 * gib;
  small.host.memory = 256 * gib;
  auto const p = make_plan(m.units, m.work, small, {});
  REQUIRE(p.fits);
  CHECK(p.on_device.total() <= 22 * gib);
  REQUIRE(!p.offloaded_weights.empty());
  CHECK(p.offloaded_weights.front() == 0);
  // The last units leave first, each with all of its state: the first ones are needed soonest.
  std::size_t elements = 0;
  for (std::size_t u = 1; u < 32; ++u) { CHECK(p.offloaded_weights[u] <= p.offloaded_weights[u + 1]); }
  for (auto const n : p.offloaded_weights) { elements += static_cast<std::size_t>(n); }
  CHECK(p.offloaded_weights[32] == m.units[32].elements());
  CHECK(p.on_host.weights == elements * 2);
  for (auto const& b : p.state.buckets) {
    CHECK(p.state.weights_offloaded(b) == (p.offloaded_weights[static_cast<std::size_t>(b.unit)] > 0));
    CHECK((b.where == tier::host || !p.state.weights_offloaded(b)));
    CHECK((p.state.offloaded.gradient_of(b.unit) || !p.state.weights_offloaded(b)));
  }
  CHECK(p.state.pinned_buffers > std::count_if(p.state.buckets.begin(), p.state.buckets.end(),
                                               [](auto const& b) { return b.where == tier::host; }));
  auto const all = make_plan(m.units, m.work, h200_machine(), {.offload_weights = choice::on});
  REQUIRE(all.fits);
  CHECK(all.on_host.weights == 32 * static_cast<std::size_t>(m.units[1].elements()) * 2);
  // A block's parameter has 12 bytes on the host: its weight, and the state beside it.
  CHECK(all.on_host.weights + all.on_host.state >= all.on_host.weights * 6);
  CHECK(all.on_host.weights + all.on_host.state <
        all.on_host.weights * 6 + 12 * static_cast<std::size_t>(m.units[0].elements() * 2) + 1);
  CHECK(make_plan(m.units, m.work, h200_machine(), {}).offloaded_weights.empty());
  auto const off = make_plan(m.units, m.work, small, {.offload_weights = choice::off});
  CHECK_FALSE(off.fits);
  CHECK(off.refusal.find("--offload_weights auto") != std::string::npos);
}

TEST_CASE("gradient sums of several micro-batches stay on the device beside offloaded weights") {
  model m{};
  auto small = h200_machine();
  small.device.memory = 64 * gib;
  small.host.memory = 256 * gib;
  m.work.micro_batches = 4;
  auto const p = make_plan(m.units, m.work, small, {.offload_weights = choice::on});
  REQUIRE(p.fits);
  CHECK(p.offloaded_weights[1] > 0);
  CHECK(std::none_of(p.state.offloaded.gradients.begin(), p.state.offloaded.gradients.end(),
                     [](bool b) { return b; }));
  CHECK(p.on_device.gradients >= 32 * static_cast<std::size_t>(m.units[1].elements()) * 4);
}

std::vector<int> sums_on_host(plan const& p) {
  std::vector<int> units;
  for (int u = 0; u < static_cast<int>(p.state.offloaded.gradients.size()); ++u) {
    if (p.state.offloaded.gradient_of(u)) {
      units.push_back(u);
    }
  }
  return units;
}

TEST_CASE("gradient sums live on the host only as far as the device lacks memory for them") {
  using state = placed_state<cpu::device, bfloat16>;
  using store = zero::offloaded_store<cpu::device, bfloat16>;
  model m{};
  m.work.micro_batches = 4;
  auto machine = h200_machine();
  machine.host.memory = 500 * gib;
  auto const sum = static_cast<std::size_t>(m.units[1].elements()) * 4;
  double slower = 1e9;
  for (std::size_t const device : {22, 26, 30, 34, 44, 64, 80}) {
    for (auto const weights : {choice::automatic, choice::off}) {
      machine.device.memory = device * gib;
      auto const p = make_plan(m.units, m.work, machine, {.offload_weights = weights});
      CAPTURE(device);
      CAPTURE(describe(p));
      if (weights == choice::off && device < 30) {
        CHECK_FALSE(p.fits);
        continue;
      }
      REQUIRE(p.fits);
      auto const there = sums_on_host(p);
      CHECK(p.on_host.gradients == there.size() * sum);
      CHECK(static_cast<std::size_t>(p.sums_on_host()) == there.size());
      CHECK(p.on_device.total() <= p.device_available);
      auto const held = store::bytes(m.units, {.accumulates = true, .offloaded = p.state.offloaded}, nullptr);
      CHECK(p.on_device.weights == held.weights);
      CHECK(p.on_device.gradients == held.gradients);
      auto const placed = state::bytes(m.units, p.state);
      CHECK(p.on_host.total() == placed.host + held.host);
      CHECK(p.pinned == p.on_host.total() - host_state<cpu::device, bfloat16>::bytes(p.state) -
                            split_state<cpu::device, bfloat16>::bytes(p.state));
      if (weights == choice::automatic) {
        CHECK(p.step_time <= slower * 1.03);
        slower = p.step_time;
        CHECK((there.empty()) == (device >= 64));
        if (device == 22) {
          CHECK(there.size() > 20);
        }
      }
      if (there.empty()) {
        continue;
      }
      // Another one would not fit, and offloaded ones are evenly spread.
      CHECK(p.device_available - p.on_device.total() < 2 * sum);
      for (std::size_t i = 1; i < there.size(); ++i) {
        auto const apart = static_cast<double>(there[i] - there[i - 1]);
        CHECK(std::abs(apart - 32.0 / static_cast<double>(there.size())) < 1.0);
      }
    }
  }
  // The step includes the link's time for the sums.
  machine.device.memory = 26 * gib;
  auto const p = make_plan(m.units, m.work, machine, {});
  CHECK(describe(p).find(concat("sums of the gradients of ", p.sums_on_host(), " units live on the host")) !=
        std::string::npos);
  auto slow = machine;
  slow.link = {{20e9, 20e9}, {18e9, 18e9}, {0.78, 1.0}, 1e-5};
  CHECK(make_plan(m.units, m.work, slow, {}).step_time > 1.5 * p.step_time);
  // If device and host share one memory, they stay.
  machine.device.is_the_host = true;
  machine.device.memory = machine.host.memory = 500 * gib;
  CHECK(sums_on_host(make_plan(m.units, m.work, machine, {.offload_weights = choice::on})).empty());
}

TEST_CASE("the embedding and the head leave a device that cannot hold them, and share one buffer there") {
  using store = zero::offloaded_store<cpu::device, bfloat16>;
  auto machine = h200_machine();
  machine.host.memory = 500 * gib;
  machine.device.reserve = 0;
  for (int const micro_batches : {1, 4}) {
    CAPTURE(micro_batches);
    model m{32, 1};
    m.work.micro_batches = micro_batches;
    auto const planned = [&](std::size_t mib) {
      machine.device.memory = mib << 20;
      return make_plan(m.units, m.work, machine, {});
    };
    int const last = static_cast<int>(m.units.size()) - 1;
    auto const end_bytes = static_cast<std::size_t>(m.units.front().elements()) * (2 + 4);
    // The least memory of plans whose ends stay: the refusal of a tied model names it.
    m.work.with_ranks.tied_to_last = 0;
    auto const tied = planned(1000);
    CHECK_FALSE(tied.fits);
    auto const with_ends = tied.on_device.total();
    m.work.with_ranks.tied_to_last = -1;
    CHECK_FALSE(planned(1000).fits);
    auto const of_block = static_cast<std::size_t>(m.units[1].elements()) * (micro_batches > 1 ? 4 : 2);
    auto const p = planned(1 + ((with_ends - end_bytes - of_block) >> 20));
    CAPTURE(describe(p));
    REQUIRE(p.fits);
    for (int const end : {0, last}) {
      CHECK(p.state.offloaded.weights_of(end));
      CHECK(p.state.offloaded.gradient_of(end));
    }
    auto const held =
        store::bytes(m.units, {.accumulates = micro_batches > 1, .offloaded = p.state.offloaded}, nullptr);
    CHECK(p.on_device.weights == held.weights);
    CHECK(p.on_device.gradients == held.gradients);
    CHECK(p.on_host.weights + p.on_host.gradients == held.host);
    CHECK(describe(p).find("weights of 34 units live on the host, 3 at a time") != std::string::npos);
    CHECK(p.state.offloaded.gradient_buffers == 3);
    if (micro_batches == 1) {  // else a sum stays before there is another buffer
      CHECK(planned(2 + ((p.on_device.total() + of_block) >> 20)).state.offloaded.gradient_buffers == 4);
    }
    // Where there is room, they stay.
    CHECK_FALSE(planned(24 << 10).state.offloaded.weights_of(0));
  }
}

TEST_CASE("without a gradient check 12 bytes a parameter are enough, in both memories together") {
  model m{60, 1};
  std::size_t elements = 0;
  for (auto const& unit : m.units) { elements += static_cast<std::size_t>(unit.elements()); }
  auto tight = h200_machine();
  tight.device.reserve = tight.host.reserve = 0;
  // Weights and state, embedding and head with their gradients, two buffers, and activations.
  auto const both = 12 * elements + 8 * static_cast<std::size_t>(m.units[0].elements()) + 14 * gib;
  tight.host.memory = both / 2;
  tight.device.memory = both - tight.host.memory;
  CHECK_FALSE(make_plan(m.units, m.work, tight, {}).fits);
  m.work.checks_gradient = false;
  auto const p = make_plan(m.units, m.work, tight, {});
  CAPTURE(describe(p));
  CHECK(p.fits);
  CHECK(p.state.immediate);
  CHECK(p.state.offloaded.gradient_of(1));
}

TEST_CASE("gradients of several ranks are offloaded only without a gradient check") {
  model m{60, 1};
  for (auto const& u : m.units) {
    auto const n = static_cast<double>(u.elements());
    m.work.with_ranks.units.push_back({.weights = 6.0 * n, .gradient = 6.0 * n});
  }
  m.work.weights_may_leave = false;
  auto machine = h200_machine();
  machine.peers.all_gather = 330e9;
  machine.peers.reduce_scatter = 260e9;
  auto const offloaded = [&](settings const& s = {}) {
    auto const p = make_plan(m.units, m.work, machine, s);
    CHECK_FALSE(p.state.offloaded.any_weights());
    CHECK((p.fits || !p.state.offloaded.any_gradient() || p.state.immediate));
    return p;
  };
  machine.device.memory = 56 * gib;
  machine.host.memory = 300 * gib;
  auto const clipped = offloaded();  // they wait on the device
  CHECK_FALSE(clipped.fits);
  CAPTURE(clipped.refusal);
  CHECK(clipped.refusal.find("--max_grad_norm 0 --on_nonfinite stop") != std::string::npos);
  m.work.checks_gradient = false;
  auto const p = offloaded();
  CAPTURE(describe(p));
  REQUIRE(p.fits);
  CHECK(p.state.immediate);
  CHECK(p.state.offloaded.gradient_of(1));
  CHECK(p.state.offloaded.gradient_of(60));
  CHECK_FALSE(p.state.offloaded.gradient_of(0));
  CHECK_FALSE(p.state.offloaded.gradient_of(61));
  CHECK(p.on_host.gradients == 0);
  CHECK(p.on_device.total() <= p.device_available);
  CHECK(describe(p).find("gradients of 60 units leave the device as they come") != std::string::npos);
  m.work.gradients_may_leave = false;
  CHECK_FALSE(offloaded().fits);
  m.work.gradients_may_leave = true;
  CHECK_FALSE(offloaded({.how = mode::zero}).fits);  // its check comes first
  m.work.micro_batches = 2;
  CHECK_FALSE(offloaded().fits);
}

/// One of four ranks, and a machine whose GEMMs are slower beside collectives.
struct rank_of_four {
  model of{8, 1};
  machine on = h200_machine();

  rank_of_four() {
    for (auto const& u : of.units) {
      auto const n = static_cast<double>(u.elements());
      of.work.with_ranks.units.push_back({.weights = 6.0 * n, .gradient = 6.0 * n});
      of.work.whole_weights.push_back(8 * static_cast<std::size_t>(u.elements()));
    }
    of.work.weights_may_leave = false;
    on.peers = {.all_gather = 330e9, .reduce_scatter = 260e9, .latency = 35e-6};
    on.peers.beside_compute = 0.7;
    on.peers.compute_beside = 0.8;
  }
  [[nodiscard]] plan planned() const { return make_plan(of.units, of.work, on, {}); }
  [[nodiscard]] plan kept(plan const& p) const { return keep_whole(p, of.units, of.work, on, {}); }
  /// The number of gathers in a step.
  [[nodiscard]] std::ptrdiff_t gathers(plan const& p) const {
    auto const all = order_of(of.work.with_ranks, p.state, of.work.micro_batches).operations;
    return std::count_if(all.begin(), all.end(), [](auto const& o) { return o.what == activity::gather; });
  }
};

TEST_CASE("weights stay gathered from forward to backward in the memory that a plan leaves") {
  rank_of_four r;
  auto const ample = r.planned();
  REQUIRE(ample.fits);
  CHECK(ample.state.buffers.weights == 3);
  CHECK(ample.gathered_units == 10);
  CHECK(r.gathers(ample) == 10 + 7);
  auto const whole = [&](std::size_t unit) { return r.of.work.whole_weights[unit]; };
  auto const reserve = 2 * gib;
  int before = 3, between = 0;
  double step_time = ample.step_time;
  for (std::size_t left = 0; left < 9 * whole(1); left += whole(1) / 2) {
    CAPTURE(left);
    r.on.device.memory = ample.on_device.total() + left + reserve;
    auto const p = r.planned();
    auto const k = r.kept(p);
    auto const buffers = k.state.buffers.weights;
    CAPTURE(buffers);
    // The rest of the plan is unchanged.
    CHECK(p.state.buffers.weights == 3);
    CHECK(k.level == p.level);
    CHECK(k.resident == p.resident);
    CHECK(k.on_device.total() - k.on_device.weights == p.on_device.total() - p.on_device.weights);
    // As many as fit, and no more.
    CHECK(k.on_device.total() <= k.device_available);
    auto const more = buffers < 9 ? whole(1) : whole(0);
    CHECK((buffers == 10 || k.on_device.total() + more > k.device_available));
    CHECK(k.on_device.weights - p.on_device.weights ==
          (buffers == 10 ? 6 * whole(1) + whole(0) : static_cast<std::size_t>(buffers - 3) * whole(1)));
    CHECK(buffers >= before);
    CHECK(k.step_time <= step_time);
    CHECK((buffers == 3) == (k.exchanged == p.exchanged));
    CHECK(k.collective_time <= p.collective_time);
    CHECK((buffers > 3) == (describe(k).find("gathered from forward to backward") != std::string::npos));
    between += buffers > 3 && buffers < 10 ? 1 : 0;
    before = buffers;
    step_time = k.step_time;
  }
  CHECK(before == 10);
  CHECK(between > 6);
  r.on = rank_of_four{}.on;
  auto const all = r.kept(ample);
  CHECK(all.state.buffers.weights == 10);
  CHECK(r.gathers(all) == 10);
  CHECK(all.step_time < ample.step_time);
  CHECK(all.step_time == doctest::Approx(step_time));
  CHECK(describe(all).find("  weights of 10 of 10 units stay gathered from forward to backward\n") !=
        std::string::npos);
  CHECK(describe(ample).find("stay gathered") == std::string::npos);

  // A tied head counts as a block, so the blocks' buffers are as large as the head.
  auto tied = r;
  tied.of.work.with_ranks.tied_to_last = 0;
  CHECK(tied.planned().on_device.weights - ample.on_device.weights == 2 * (whole(0) - whole(1)));

  // They are gathered once a step, also with several micro-batches.
  r.of.work.micro_batches = 3;
  auto const three = r.kept(r.planned());
  CHECK(three.state.buffers.weights == 10);
  CHECK(r.gathers(three) == 10);
}

TEST_CASE("gather buffers that save no time are not taken") {
  auto const stays = [](rank_of_four const& r) {
    auto const p = r.planned();
    REQUIRE(p.fits);
    auto const k = r.kept(p);
    return k.state.buffers.weights == 3 && k.on_device.total() == p.on_device.total() &&
           k.step_time == p.step_time;
  };
  rank_of_four r;
  CHECK_FALSE(stays(r));
  r.on.peers.beside_compute = r.on.peers.compute_beside = 1.0;
  r.on.peers.latency = 0.0;
  r.on.peers.all_gather = r.on.peers.reduce_scatter = 3e13;  // hidden, and compute is not slower beside them
  CHECK(stays(r));
  r = {};
  r.on.device.is_the_host = true;
  CHECK(stays(r));
  r = {};
  r.of.work.with_ranks = {};
  r.of.work.whole_weights.clear();
  CHECK(stays(r));
  r = {};
  r.on.device.memory = 10 * gib;
  r.on.host.memory = 8 * gib;
  auto const refused = r.planned();
  CHECK_FALSE(refused.fits);
  CHECK(r.kept(refused).on_device.total() == refused.on_device.total());
}

TEST_CASE("a plan that does not fit is refused in one line that says what would help") {
  auto const refusal = [](model const& m, machine const& where, settings const& s) {
    auto const p = make_plan(m.units, m.work, where, s);
    CAPTURE(describe(p));
    CHECK_FALSE(p.fits);
    CHECK(p.refusal.find('\n') == std::string::npos);
    try {
      expect_fits(p);
      FAIL("the plan should have been refused");
    } catch (error const& e) { CHECK(e.code() == exit_code::cannot_fit); }
    return p.refusal;
  };
  auto const says = [](std::string const& message, std::string const& part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  model large{32, 2000};
  large.work.weights_may_leave = large.work.gradients_may_leave = false;
  says(refusal(large, h200_machine(), {}), "shorter sequences");
  says(refusal(model{60}, h200_machine(), {.how = mode::none}), "--offload auto");
  says(refusal(model{60}, h200_machine(), {.ratio = 0.1}), "no --ratio");
  says(refusal(model{120}, h200_machine(), {}), "GiB of host memory, but 121.0 GiB are available");
  says(refusal(model{60}, h200_machine(), {.ratio = 1.0}), "no --ratio");
  says(refusal(model{48}, h200_machine(), {.how = mode::zero, .ratio = 1.0, .device_updated_share = 0.0}),
       "host memory");
  auto tiny = h200_machine();
  tiny.device.memory = 8 * gib;
  says(refusal(model{}, tiny, {}), "device");
  tiny.device.memory = tiny.device.reserve + (std::size_t{8} << 20);
  says(refusal(model{}, tiny, {}), "but 8.0 MiB are available");
}

TEST_CASE("a refusal asks for as much more host memory as the run needs") {
  for (bool const checks_gradient : {true, false}) {
    model m{120};
    m.work.checks_gradient = checks_gradient;
    auto machine = h200_machine();
    machine.device.memory = 40 * gib;
    machine.host.memory = 60 * gib;
    auto const refusal = make_plan(m.units, m.work, machine, {}).refusal;
    CAPTURE(refusal);
    std::string const words = "use a host with ";
    auto const at = refusal.find(words);
    REQUIRE(at != std::string::npos);
    auto const more = std::stod(refusal.substr(at + words.size()));
    CHECK(more > 1.0);
    auto const fits_with = [&](double gibs) {
      auto other = machine;
      other.host.memory += static_cast<std::size_t>(gibs * gib);
      return can_fit(m.units, m.work, other, {});
    };
    CHECK(fits_with(more + 0.06));  // it is rounded to a tenth
    CHECK_FALSE(fits_with(more - 0.06));
  }
}

TEST_CASE("can_fit agrees with make_plan on both sides of every limit") {
  model m{};
  for (bool const checks_gradient : {true, false}) {
    m.work.checks_gradient = checks_gradient;
    for (int const micro_batches : {1, 2}) {
      m.work.micro_batches = micro_batches;
      for (settings const& s : {settings{}, settings{.how = mode::none}, settings{.ratio = 0.7},
                                settings{.offload_weights = choice::on}, settings{.how = mode::zero}}) {
        int fitting = 0;
        for (std::size_t const device : {14, 30, 50, 140}) {
          for (std::size_t const host : {40, 300}) {
            auto machine = h200_machine();
            machine.device.memory = device * gib;
            machine.host.memory = host * gib;
            bool const fits = make_plan(m.units, m.work, machine, s).fits;
            CAPTURE(device);
            CAPTURE(host);
            CHECK(can_fit(m.units, m.work, machine, s) == fits);
            fitting += fits ? 1 : 0;
          }
        }
        CHECK(fitting > 0);
        CHECK(fitting < 8);
      }
    }
  }
}

TEST_CASE("activations of a level that offloads them count as host memory and use the link") {
  model m{8};
  m.work.levels = {m.work.levels.front()};
  auto const stay = make_plan(m.units, m.work, h200_machine(), {});
  auto& level = m.work.levels.front();
  level.offloading = {.buffers = 3, .kept = 2};
  level.on_host = 40 * gib;
  level.buffers = 3;
  level.blocks = 8;
  level.leaving.assign(m.units.size(), 0.0);
  for (int unit = 1; unit <= 5; ++unit) { level.leaving[static_cast<std::size_t>(unit)] = 0x8p30; }
  auto machine = h200_machine();
  auto const leave = make_plan(m.units, m.work, machine, {});
  REQUIRE(leave.fits);
  CHECK(leave.on_host.activations == 40 * gib);
  CHECK(leave.on_host.total() == stay.on_host.total() + 40 * gib);
  CHECK(leave.pinned == stay.pinned + 40 * gib);
  CHECK(leave.state.activations == level.offloading);
  CHECK(describe(leave).find("activations of blocks go to the host, those of 3 at a time stay") !=
        std::string::npos);
  auto const s = schedule_of(leave, m.work, machine);
  CHECK(s.offloaded_activations == level.leaving);
  CHECK(s.activation_buffers == 3);
  // 40 GiB take .8 s in each direction, much longer than the passes.
  CHECK(leave.bound > 0x28p30 / machine.link.alone.down);
  CHECK(leave.step_time >= leave.bound);
  CHECK(leave.step_time > 2 * stay.step_time);

  machine.host.memory = 43 * gib;
  auto const refused = make_plan(m.units, m.work, machine, {});
  CHECK_FALSE(refused.fits);
  CHECK(refused.refusal.find("of host memory") != std::string::npos);
}

TEST_CASE("no more state leaves the device than must, also if gradients leave with it") {
  model m{32, 2};
  m.work.checks_gradient = false;
  auto machine = h200_machine();
  machine.device.memory = 60 * gib;
  machine.host.memory = 500 * gib;
  settings const s{.device_updated_share = 1.0, .offload_weights = choice::off};
  auto const free = make_plan(m.units, m.work, machine, s);
  REQUIRE(free.fits);
  // The former plan still fits, so a plan must be found.
  machine.host.memory = free.on_host.total() + 6 * gib;
  auto const tight = make_plan(m.units, m.work, machine, s);
  REQUIRE(tight.fits);
  auto const bucket = static_cast<std::size_t>(tight.state.largest(tier::device_updated)) * 10;
  CHECK(tight.on_device.total() - tight.on_device.staging_buffers + 6 * bucket >= 58 * gib);
}

TEST_CASE("a plan that takes more of the host is chosen if it is clearly faster") {
  // Without a check no gradients are held, and offloaded weights leave their memory to state.
  model m{32, 2};
  m.work.checks_gradient = false;
  auto const planned = [&](std::size_t device, settings const& s) {
    auto machine = h200_machine();
    machine.device.memory = device * gib;
    machine.host.memory = 500 * gib;
    return make_plan(m.units, m.work, machine, s);
  };
  auto const free = planned(26, {}), without = planned(26, {.offload_weights = choice::off});
  REQUIRE(without.fits);
  REQUIRE(free.fits);
  CHECK_FALSE(free.offloaded_weights.empty());
  CHECK(free.step_time < 0.97 * without.step_time);
  // With more memory little is gained, and weights stay.
  auto const ample = planned(80, {});
  CHECK(ample.offloaded_weights.empty());
  CHECK(ample.step_time < planned(80, {.offload_weights = choice::on}).step_time);
}

TEST_CASE("plans are deterministic, and quick") {
  model const m{};
  auto const a = make_plan(m.units, m.work, h200_machine(), {.how = mode::super, .ratio = 1.0});
  auto const b = make_plan(m.units, m.work, h200_machine(), {.how = mode::super, .ratio = 1.0});
  CHECK(a.step_time == b.step_time);
  CHECK(a.state.buckets == b.state.buckets);
  CHECK(a.state.pinned_buffers == b.state.pinned_buffers);
}

TEST_CASE("the description names memory tiers, bytes and the expected step") {
  model const m{};
  auto const text = describe(make_plan(m.units, m.work, h200_machine(), {.how = mode::super, .ratio = 1.0}));
  for (char const* part : {"optimizer state", "pinned buffers", "in all", "available", "updated by the CPU",
                           "CPU Adam: 14 threads", "recompute:", "tokens/s", "busy:"}) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  }
  auto small = h200_machine();
  small.host.memory = 8 * gib;
  CHECK(describe(make_plan(m.units, m.work, small, {.ratio = 1.0})).find("does not fit:") !=
        std::string::npos);
}

}  // namespace
