// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/offload/planning/measure.hpp>

#include <doctest/doctest.h>

#include "support/scarce_device.hpp"

#include <cmath>

namespace {

using namespace superoffload;

offload::probe small_probe() {
  return {.rows = 64,
          .inner = 32,
          .columns = 96,
          .attention = {.starts = nullptr,
                        .documents = 2,
                        .rows = 64,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = 16,
                        .longest = 32,
                        .scale = 0.25},
          .bucket = 5000};
}

/// Checks a rate or a time that a plan can use.
void check_positive(double value) {
  CHECK(std::isfinite(value));
  CHECK(value > 0.0);
}

TEST_CASE_TEMPLATE("every rate of this machine is measured", T, float, bfloat16) {
  cpu::device device{2};
  auto m = offload::this_machine(device);
  CHECK(m.name == device.description());
  CHECK(m.device.is_the_host);
  CHECK(m.device.memory > m.device.reserve);
  CHECK(m.host.memory > m.host.reserve);
  CHECK(m.host.cores >= 1);

  offload::measure_device<T>(device, small_probe(), m);
  for (double const rate :
       {m.device.gemms, m.device.attention_forward, m.device.attention_backward, m.device.bandwidth}) {
    check_positive(rate);
  }
  check_positive(m.device.round_trip);
  CHECK(m.device.grouped_gemms == 0.0);  // there are no experts
  auto with_experts = small_probe();
  with_experts.experts = 8;
  with_experts.each = 2;
  offload::measure_device<T>(device, with_experts, m);
  check_positive(m.device.grouped_gemms);

  offload::measure_offloading<T>(device, small_probe(), m);
  for (auto const& rates : {m.link.alone, m.link.both, m.link.beside_adam}) {
    check_positive(rates.down);
    check_positive(rates.up);
  }
  check_positive(m.link.latency);
  CHECK(m.link.beside_adam.down <= 1.0);
  CHECK(m.link.beside_adam.up <= 1.0);
  CHECK(m.link.both.down <= m.link.alone.down);
  CHECK(m.link.both.up <= m.link.alone.up);
  CHECK((0.0 <= m.adam.one_way_share && m.adam.one_way_share <= 1.0));
  CHECK(m.adam.threads == cpu::optimizer_threads(small_probe().cores_share, m.host.cores));
  check_positive(m.adam.latency);
  for (std::size_t i = 0; i < offload::adam_tasks; ++i) {
    check_positive(m.adam.links_idle[i]);
    CHECK(m.adam.links_busy[i] >= m.adam.links_idle[i]);
    auto const task = static_cast<offload::adam_task>(i);
    CHECK(m.adam_time(task, m.adam.threads, 0) == doctest::Approx(m.adam.links_idle[i]));
    CHECK(m.adam_time(task, m.adam.threads, 2) == doctest::Approx(m.adam.links_busy[i]));
  }
}

TEST_CASE("measuring a machine frees all of its memory") {
  cpu::device device{1};
  offload::machine m;
  m.host.cores = 2;
  offload::measure_device<float>(device, small_probe(), m);
  offload::measure_offloading<float>(device, small_probe(), m);
  CHECK(device.bytes_in_use(memory::device) == 0);
  CHECK(device.bytes_in_use(memory::host) == 0);
  CHECK(device.peak_bytes(memory::device) > 0);
  device.forget_peaks();
  CHECK(device.peak_bytes(memory::device) == 0);
  CHECK(device.peak_bytes(memory::host) == 0);
}

TEST_CASE("a batch larger than the memory is measured in part") {
  cpu::device device{2};
  auto p = small_probe();
  p.rows = std::int64_t{1} << 40;
  p.attention.documents = std::int64_t{1} << 35;
  p.attention.longest = 1 << 20;
  p.attention.rows = p.rows;
  offload::machine m;
  offload::measure_device<float>(device, p, m);
  check_positive(m.device.gemms);
  check_positive(m.device.attention_backward);
  CHECK(device.peak_bytes(memory::device) < std::size_t{1} << 30);
}

TEST_CASE("a measurement without memory throws after its queued work has ended") {
  auto with_experts = small_probe();
  with_experts.experts = 4;
  with_experts.each = 2;
  offload::machine m;
  m.host.cores = 2;
  m.host.memory = std::size_t{1} << 30;
  auto const check = [](test::scarce_device const& device, error const& thrown) {
    CHECK(thrown.code() == (device.refused() ? exit_code::cannot_fit : exit_code::ok));
    CHECK(device.released_in_use() == 0);
  };
  CHECK(test::refuse_each_allocation(
            [&](auto& device) { offload::measure_device<bfloat16>(device, with_experts, m); }, check) > 15);
  CHECK(test::refuse_each_allocation(
            [&](auto& device) { offload::measure_offloading<bfloat16>(device, small_probe(), m); }, check) >=
        2);
}

}  // namespace
