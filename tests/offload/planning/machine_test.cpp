// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/offload/planning/machine.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using namespace superoffload;
using offload::within_budget;

namespace {

constexpr std::size_t gib = std::size_t{1} << 30;

offload::machine machine_of(std::size_t device, std::size_t host) {
  offload::machine m;
  m.device.memory = device + gib;
  m.device.reserve = gib;
  m.host.memory = host + 2 * gib;
  m.host.reserve = 2 * gib;
  return m;
}

}  // namespace

TEST_CASE("a budget leaves less to a plan, and never more than is there") {
  auto const m = machine_of(80 * gib, 100 * gib);
  auto const same = within_budget(m, {});
  CHECK(same.device.memory == m.device.memory);
  CHECK(same.host.memory == m.host.memory);
  auto const less = within_budget(m, {.device_memory = 24 * gib, .host_memory = 64 * gib});
  CHECK(less.device.memory == 25 * gib);
  CHECK(less.host.memory == 66 * gib);
  auto const more = within_budget(m, {.device_memory = 81 * gib, .host_memory = 1000 * gib});
  CHECK(more.device.memory == m.device.memory);
  CHECK(more.host.memory == m.host.memory);
}

TEST_CASE("where device and host share one memory, the smaller budget counts for both") {
  auto m = machine_of(100 * gib, 99 * gib);
  m.device.is_the_host = true;
  auto const same = within_budget(m, {});
  CHECK(same.device.memory == m.device.memory);
  CHECK(same.host.memory == m.host.memory);
  for (auto const& s :
       {offload::settings{.device_memory = 8 * gib}, offload::settings{.host_memory = 8 * gib}}) {
    auto const less = within_budget(m, s);
    CHECK(less.device.memory - less.device.reserve == 8 * gib);
    CHECK(less.host.memory - less.host.reserve == 8 * gib);
  }
}

TEST_CASE("a machine whose reserve is larger than its memory has nothing") {
  auto m = machine_of(0, 0);
  m.device.memory = gib / 2;
  CHECK(within_budget(m, {.device_memory = gib}).device.memory == m.device.reserve);
}

TEST_CASE("GEMMs are as fast as their share of the time leaves a device power for") {
  auto m = machine_of(gib, gib);
  m.device.gemms = 700.0;
  m.device.float8_gemms = 1000.0;
  m.device.rested = 1.2;
  for (double const share : {0.0, 0.5}) {
    CHECK(offload::with_gemms_for(m, share).device.gemms == doctest::Approx(840.0));
    CHECK(offload::with_gemms_for(m, share).device.float8_gemms == doctest::Approx(1200.0));
  }
  CHECK(offload::with_gemms_for(m, 0.75).device.gemms == doctest::Approx(770.0));
  for (double const share : {1.0, 1.1}) {
    CHECK(offload::with_gemms_for(m, share).device.gemms == doctest::Approx(700.0));
  }
  m.device.rested = 1.0;
  CHECK(offload::with_gemms_for(m, 0.2).device.gemms == 700.0);
}

TEST_CASE("copies in one direction slow CPU Adam by their share of what both do") {
  offload::machine m;
  m.adam.links_idle.fill(1.0);
  m.adam.links_busy.fill(3.0);
  auto const time = [&](int directions) {
    return m.adam_time(offload::adam_task::update, m.adam.threads, directions);
  };
  CHECK(time(1) == doctest::Approx(2.0));
  m.adam.one_way_share = 0.25;
  CHECK(time(0) == doctest::Approx(1.0));
  CHECK(time(1) == doctest::Approx(1.5));
  CHECK(time(2) == doctest::Approx(3.0));
}
