// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Engines that are constructed and planned in one call: they are configured by their plan, train bit for bit
// like an engine with state on the device, and are refused if they do not fit.
#include <superoffload/core/error.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/planned_engine.hpp>
#include <superoffload/zero/offloaded.hpp>

#include <doctest/doctest.h>

#include "support/contents_of.hpp"
#include "support/engine_cores.hpp"
#include "support/placed_training.hpp"
#include "support/scratch_directory.hpp"
#include "support/small_inputs.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

namespace {

using namespace superoffload;
using simple_engine = train::engine<model::llama, precision::bf16>;
using engine = train::engine<model::llama, precision::bf16, zero::offloaded, offload::super>;

model::config small() {
  return {.model_type = "llama",
          .vocabulary = 19,
          .hidden = 16,
          .intermediate = 24,
          .layers = 3,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .max_positions = 32};
}

train::engine_options options(bool accumulates) {
  return {.max_rows = 12,
          .max_positions = 12,
          .accumulates = accumulates,
          .recompute = recompute::choice::automatic};
}

/// Settings with the rates of a described machine: nothing is measured.
offload::settings described() {
  return {.hardware = std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "gh200.json"};
}

/// The code and message of the error that a call throws.
template <class Call>
error refused(Call const& call) {
  try {
    call();
  } catch (error const& e) { return e; }
  return error{exit_code::ok, "nothing was thrown"};
}

TEST_CASE("a planned engine is configured by its plan and trains like one with state on the device") {
  cpu::device device{2};
  for (bool const accumulates : {false, true}) {
    CAPTURE(accumulates);
    train::plan_options o{.offload = {.ratio = 1.0}, .micro_batches = accumulates ? 3 : 1};
    SUBCASE("measured") {}
    SUBCASE("described") { o.offload.hardware = described().hardware; }
    SUBCASE("with weights in host memory") { o.offload.offload_weights = offload::choice::on; }
    train::planned_engine<engine> planned{device, small(), options(accumulates), o};

    auto const& [shape, machine, measuring, settings, plan] = planned.planned();
    CHECK(shape.sequences == 1);
    CHECK(shape.micro_batches == o.micro_batches);
    CHECK(machine.device.gemms > 0.0);
    CHECK(measuring > 0.0);
    CHECK(settings.ratio == 1.0);
    CHECK(plan.resident == 0.0);
    CHECK(planned.allocation().total() == plan.on_device.total());
    CHECK(planned.allocation().host == plan.on_host.total());
    auto const& buckets = planned.options().configuration.buckets;
    REQUIRE(!buckets.empty());
    CHECK(std::none_of(buckets.begin(), buckets.end(),
                       [](auto const& b) { return b.where == offload::tier::resident; }));
    auto const text = planned.plan_text();
    CHECK(text.starts_with("plan for llama, 3 layers of 16, on " + device.description() + " in bf16\n"));
    CHECK(text.find("optimizer state: 0.0 % on the device") != std::string::npos);

    simple_engine simple{device, small(), options(accumulates)};
    simple.initialize(test::some_weights);
    planned.initialize(test::some_weights);
    CHECK(test::train(planned, 0, 20, accumulates, true) == test::train(simple, 0, 20, accumulates, true));
    CHECK(test::everything(planned) == test::everything(simple));
  }
}

TEST_CASE("an engine whose plan does not fit is refused, with what would help") {
  auto large = small();
  large.hidden = 1 << 14;
  large.intermediate = 1 << 16;
  large.layers = 400;
  large.heads = large.kv_heads = 128;
  large.head_dim = 128;
  cpu::device device{2};
  auto const thrown = refused(
      [&] { train::planned_engine<engine>{device, large, options(false), {.offload = described()}}; });
  CHECK(thrown.code() == exit_code::cannot_fit);
  CHECK(std::string{thrown.what()}.find("GiB") != std::string::npos);
}

TEST_CASE("a plan goes to the files that the settings name") {
  test::scratch_directory const root;
  auto settings = described();
  settings.plan = root.path() / "plan.json";
  settings.timeline = root.path() / "plan.svg";
  cpu::device device{2};
  train::planned_engine<engine> const planned{device, small(), options(false), {.offload = settings}};
  CHECK(test::contents_of(settings.plan) ==
        train::to_json(planned.planned().plan, planned.planned().machine.name));
  CHECK(test::contents_of(settings.timeline).starts_with("<svg"));
}

TEST_CASE("settings that an engine does not support are refused") {
  cpu::device device{2};
  auto const planning = [&]<class E>(train::plan_options const& o) {
    return refused([&] { train::planned_engine<E>{device, small(), options(false), o}; });
  };
  auto const off_device = planning.operator()<simple_engine>({.offload = {.ratio = 0.5}});
  CHECK(off_device.code() == exit_code::bad_input);
  CHECK(std::string{off_device.what()}.find("offload::super") != std::string::npos);
  auto const contradiction =
      planning.operator()<engine>({.offload = {.how = offload::mode::none, .ratio = 0.5}});
  CHECK(contradiction.code() == exit_code::bad_input);
  CHECK(std::string{contradiction.what()}.find("--offload is none") != std::string::npos);
  for (int const micro_batches : {0, 2}) {
    auto const sums = planning.operator()<engine>({.micro_batches = micro_batches});
    CHECK(sums.code() == exit_code::bad_input);
    CHECK(std::string{sums.what()}.find("engine_options::accumulates is false") != std::string::npos);
  }
}

}  // namespace
