// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/json.hpp>
#include <superoffload/train/planning/plan_file.hpp>

#include <doctest/doctest.h>

namespace {

using namespace superoffload;

offload::plan some_plan() {
  offload::plan p;
  p.recompute = "none";
  p.host = 0.75;
  p.resident = 0.25;
  p.on_device = {.weights = 10, .gradients = 20, .state = 30};
  p.on_host = {.gradients = 4, .state = 5, .pinned_buffers = 6};
  p.state.offloaded.gradients = {false, true, true};
  p.device_available = 100;
  p.pinned = 13;
  p.host_available = 50;
  p.step_time = 0.5;
  p.bound = 0.25;
  p.tokens_per_second = 1000.0;
  p.model_flops_per_second = 2e14;
  p.state.buckets.resize(7);
  p.state.buffers.weights = 5;
  p.gathered_units = 9;
  p.exchanged = 4096.0;
  p.collective_time = 0.25;
  p.rows_exchanged = 2048.0;
  p.rows_time = 0.0625;
  p.step.busy = {0.5, 0.1, 0.2, 0.3, 0.4, 0.6};
  p.step.waited_for_ranks = 0.125;
  p.step.waits = {0.001, 0.0};
  p.step.speculated = 3.0;
  p.step.intervals = {{offload::lane::compute, offload::activity::forward, 0, 0.0, 0.125},
                      {offload::lane::compute, offload::activity::forward, 1, 0.25, 0.5},
                      {offload::lane::cpu, offload::activity::commit_update, 1, 0.25, 0.5}};
  return p;
}

TEST_CASE("a plan as JSON has every field") {
  auto const j = io::parse_json(train::to_json(some_plan(), "a \"machine\""), "plan");
  CHECK(j["fits"] == true);
  CHECK(j["refusal"].is_null());
  CHECK(j["machine"] == "a \"machine\"");
  CHECK(j["step_time_ms"] == 500.0);
  CHECK(j["bound_ms"] == 250.0);
  CHECK(j["tokens_per_second"] == 1000.0);
  CHECK(j["model_tflops"] == 200.0);
  CHECK(j["recompute"] == "none");
  CHECK(j["tiers"]["resident"] == 0.25);
  CHECK(j["tiers"]["host"] == 0.75);
  CHECK(j["tiers"]["device_updated"] == 0.0);
  CHECK(j["buckets"] == 7);
  CHECK(j["device_bytes"]["weights"] == 10);
  CHECK(j["device_bytes"]["total"] == 60);
  CHECK(j["device_bytes"]["available"] == 100);
  CHECK(j["units_with_sums_on_host"] == 2);
  CHECK(j["host_bytes"]["gradients"] == 4);
  CHECK(j["host_bytes"]["pinned_buffers"] == 6);
  CHECK(j["pinned_host_bytes"] == 13);
  CHECK(j["busy"]["cpu_adam"] == 0.4);
  CHECK(j["busy"]["collectives"] == 0.6);
  CHECK(j["collectives"]["gather_buffers"] == 5);
  CHECK(j["collectives"]["bytes"] == 4096.0);
  CHECK(j["collectives"]["ms"] == 250.0);
  CHECK(j["collectives"]["waited_ms"] == 125.0);
  CHECK(j["shared_micro_batches"]["bytes"] == 2048.0);
  CHECK(j["shared_micro_batches"]["ms"] == 62.5);
  CHECK(j["buckets_per_step"]["speculated"] == 3.0);
  CHECK(j["waits_ms"][0] == 1.0);
  CHECK(j["activities"].size() == 2);
  CHECK(j["activities"]["forward"]["count"] == 2);
  CHECK(j["activities"]["forward"]["ms"] == 375.0);
  CHECK(j["activities"]["commit + update"]["ms"] == 250.0);
}

TEST_CASE("there are no more gather buffers than units, and none for a single rank") {
  auto p = some_plan();
  auto const buffers = [&] {
    return io::parse_json(train::to_json(p, ""), "plan")["collectives"]["gather_buffers"];
  };
  p.gathered_units = 2;
  CHECK(buffers() == 2);
  p.gathered_units = 0;
  CHECK(buffers() == 0);
}

TEST_CASE("unknown values of a plan that does not fit are null") {
  auto p = some_plan();
  p.fits = false;
  p.refusal = "use less";
  auto const j = io::parse_json(train::to_json(p, ""), "plan");
  CHECK(j["fits"] == false);
  CHECK(j["refusal"] == "use less");
  CHECK(j["step_time_ms"].is_null());
  CHECK(j["tokens_per_second"].is_null());
  CHECK(j["collectives"]["bytes"].is_null());
  CHECK(j["device_bytes"]["total"] == 60);
}

}  // namespace
