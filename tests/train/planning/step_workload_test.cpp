// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/described_device.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/offload/planning/planner.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/planning/machine_file.hpp>
#include <superoffload/train/planning/step_workload.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"

#include <algorithm>
#include <filesystem>

namespace {

using namespace superoffload;

model::config llama_of(std::int64_t layers, std::int64_t hidden, std::int64_t intermediate,
                       std::int64_t vocabulary) {
  return {.model_type = "llama",
          .vocabulary = vocabulary,
          .hidden = hidden,
          .intermediate = intermediate,
          .layers = layers,
          .heads = hidden / 64,
          .kv_heads = hidden / 128,
          .head_dim = 64,
          .max_positions = 4096};
}

TEST_CASE("the workload of a step has the model's work, unit by unit") {
  model::llama const m{llama_of(3, 256, 768, 1000)};
  described_device const device{"described", 1 << 30};
  constexpr std::int64_t rows = 512, positions = 128, sequences = 4;
  auto const w =
      train::workload_of(train::dry_model_of<bfloat16>(device, m),
                         {.micro_batch = {rows, positions}, .sequences = sequences, .micro_batches = 2});
  REQUIRE(w.units.size() == m.units().size());
  double gemms = 0.0, attention = 0.0;
  for (auto const& u : w.units) {
    gemms += u.forward.gemms;
    attention += u.forward.attention;
    CHECK(u.backward.gemms == doctest::Approx(&u == &w.units.back() ? 0.0 : 2.0 * u.forward.gemms));
    CHECK(u.backward.attention == doctest::Approx(2.5 * u.forward.attention));
    CHECK(u.forward.bytes > 0.0);
    CHECK(u.backward.bytes > 0.0);
  }
  // The head's forward includes its backward.
  double const head = 2.0 * 1000 * 256 * rows;
  auto const flops = [&](std::int64_t tokens, std::int64_t pairs) {
    return m.forward_flops(tokens, [&](std::int32_t) { return pairs; });
  };
  CHECK(gemms == doctest::Approx(flops(rows, 0) + 2.0 * head));
  // All documents count as long as the longest; the diagonal counts half.
  CHECK(attention == doctest::Approx(flops(rows, sequences * positions * positions / 2) - flops(rows, 0)));
  CHECK(w.units[1].forward.gemms == doctest::Approx(w.units[2].forward.gemms));
  CHECK(w.units.front().forward.gemms == 0.0);
  CHECK(w.tokens == 2 * rows);
  CHECK(w.model_flops ==
        doctest::Approx(3.0 * flops(2 * rows, 2 * sequences * positions * (positions + 1) / 2)));
  CHECK(w.element_bytes == 2);
}

TEST_CASE("the expected step decides the time, the largest micro-batch the memory") {
  model::llama const m{llama_of(3, 256, 768, 1000)};
  described_device const device{"described", 1 << 30};
  train::step_shape shape{.micro_batch = {1024, 128}, .sequences = 8, .micro_batches = 2};
  auto const largest = train::workload_of(train::dry_model_of<bfloat16>(device, m), shape);
  shape.expected = train::expected_step{{512, 64}, 900};
  auto const w = train::workload_of(train::dry_model_of<bfloat16>(device, m), shape);
  auto const small = train::workload_of(train::dry_model_of<bfloat16>(device, m),
                                        {.micro_batch = {512, 64}, .sequences = 8, .micro_batches = 2});
  REQUIRE(w.units.size() == small.units.size());
  for (std::size_t u = 0; u < w.units.size(); ++u) {
    CHECK(w.units[u].forward.gemms == small.units[u].forward.gemms);
    CHECK(w.units[u].forward.attention == small.units[u].forward.attention);
    CHECK(w.units[u].backward.bytes == small.units[u].backward.bytes);
  }
  CHECK(w.units[1].forward.gemms < largest.units[1].forward.gemms);
  CHECK(w.tokens == 900);
  CHECK(w.model_flops == doctest::Approx(small.model_flops * 900.0 / 1024.0));
  REQUIRE(w.levels.size() == largest.levels.size());
  for (std::size_t i = 0; i < w.levels.size(); ++i) {
    CHECK(w.levels[i].activations == largest.levels[i].activations);
    CHECK(w.levels[i].name.starts_with(largest.levels[i].name));
    // A smaller micro-batch keeps more in the same memory.
    CHECK((i == 0 || w.levels[i].recompute[1].gemms < largest.levels[i].recompute[1].gemms / 2.0));
  }
  CHECK(w.levels.front().name == "none");
  CHECK(w.levels.back().name.starts_with("every block; of the expected micro-batch "));
  CHECK(w.workspaces == largest.workspaces);
  auto const level =
      train::level_within(train::dry_model_of<bfloat16>(device, m), shape, largest.levels.back().activations);
  CHECK(level.activations <= largest.levels.back().activations);
  CHECK(level.recompute[1].gemms == doctest::Approx(w.levels.back().recompute[1].gemms));

  shape.recompute = recompute::choice::every_block;  // whatever fits
  auto const blocks = train::workload_of(train::dry_model_of<bfloat16>(device, m), shape).levels;
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].name == "every block");
  CHECK(blocks[0].recompute[1].gemms == largest.levels.back().recompute[1].gemms / 2.0);
}

TEST_CASE("grouped GEMMs of experts are counted apart, once for each choice of a token") {
  auto c = llama_of(3, 256, 96, 1000);
  c.model_type = "qwen3_moe";
  c.experts = 8;
  c.experts_per_token = 2;
  model::qwen3_moe const m{c};
  described_device const device{"described", 1 << 30};
  constexpr std::int64_t rows = 512;
  auto const w = train::workload_of(train::dry_model_of<bfloat16>(device, m),
                                    {.micro_batch = {rows, 128}, .sequences = 4});
  double gemms = 0.0, grouped = 0.0;
  for (auto const& u : w.units) {
    gemms += u.forward.gemms;
    grouped += u.forward.grouped;
    CHECK(u.backward.grouped == doctest::Approx(2.0 * u.forward.grouped));
  }
  CHECK(grouped == doctest::Approx(3 * 6.0 * 256 * 96 * 2 * rows));
  double const head = 2.0 * 1000 * 256 * rows;
  CHECK(gemms + grouped ==
        doctest::Approx(m.forward_flops(rows, [](std::int32_t) { return 0; }) + 2.0 * head));
  CHECK(w.levels.back().recompute[1].grouped == 0.0);  // a block's result is kept
}

TEST_CASE("levels go from all to nothing kept, each with less memory and more recompute") {
  model::llama const m{llama_of(3, 256, 768, 1000)};
  described_device const device{"described", 1 << 30};
  train::step_shape shape{.micro_batch = {512, 128}, .sequences = 4};
  auto const w = train::workload_of(train::dry_model_of<bfloat16>(device, m), shape);
  REQUIRE(w.levels.size() >= 4);
  CHECK(w.levels.front().name == "none");
  CHECK(w.levels.back().name == "every block");
  double before = -1.0;
  for (std::size_t i = 0; i < w.levels.size(); ++i) {
    double recomputed = 0.0;
    for (auto const& a : w.levels[i].recompute) { recomputed += a.gemms + a.attention + a.bytes; }
    CHECK(recomputed > before);
    before = recomputed;
    CHECK((i == 0 || w.levels[i].activations <= w.levels[i - 1].activations));
  }
  CHECK(w.levels.back().recompute[1].gemms > 0.9 * w.units[1].forward.gemms * 0.5);

  shape.recompute = recompute::choice::none;
  CHECK(train::workload_of(train::dry_model_of<bfloat16>(device, m), shape).levels.size() == 1);
  shape.recompute = recompute::choice::every_block;
  auto const blocks = train::workload_of(train::dry_model_of<bfloat16>(device, m), shape);
  REQUIRE(blocks.levels.size() == 1);
  CHECK(blocks.levels[0].name == "every block");
  CHECK(blocks.levels[0].activations == w.levels.back().activations);
}

TEST_CASE("an engine that is configured by a plan has exactly the plan's memory") {
  auto const config = llama_of(3, 256, 768, 1000);
  cpu::device device;
  using engine = train::engine<model::llama, precision::bf16, offload::super>;
  auto const machine = train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
  model::llama const m{config};
  for (int const micro_batches : {1, 2}) {
    auto const w =
        train::workload_of(train::dry_model_of<bfloat16>(device, m),
                           {.micro_batch = {512, 128}, .sequences = 4, .micro_batches = micro_batches});
    auto const p = offload::make_plan(
        m.units(), w, machine,
        {.how = offload::mode::super, .ratio = 0.7, .device_updated_share = 0.4, .bucket_bytes = 1 << 20});
    REQUIRE(p.fits);
    engine e{device,
             config,
             {.max_rows = 512,
              .max_positions = 128,
              .accumulates = micro_batches > 1,
              .recompute = recompute::choice::automatic,
              .configuration = p.state}};
    e.fit_into(e.allocation().total() - e.allocation().activations + p.on_device.activations);
    CHECK(e.allocation().activations == p.on_device.activations);
    CHECK(e.allocation().weights == p.on_device.weights);
    CHECK(e.allocation().gradients == p.on_device.gradients);
    CHECK(e.allocation().total() == p.on_device.total());
    CHECK(e.allocation().host == p.on_host.total());
  }
}

TEST_CASE("levels that offload go from all to nothing kept, and say what leaves the device") {
  model::llama const m{llama_of(8, 256, 768, 1000)};
  described_device const device{"described", 1 << 30};
  train::step_shape shape{.micro_batch = {512, 128}, .sequences = 4, .recompute = recompute::choice::offload};
  auto const w = train::workload_of(train::dry_model_of<bfloat16>(device, m), shape);
  REQUIRE(w.levels.size() >= 6);
  for (auto const& level : w.levels) {
    CAPTURE(level.name);
    CHECK(level.blocks == 8);
    CHECK((level.buffers == 4 || level.buffers == 3));
    auto const leaving =
        std::count_if(level.leaving.begin(), level.leaving.end(), [](double b) { return b > 0; });
    CHECK(leaving == 8 - level.buffers);
    CHECK(level.leaving[0] == 0.0);  // the embedding is no block
    CHECK(level.leaving[1] > 0.0);
    double bytes = 0.0;
    for (double const b : level.leaving) { bytes += b; }
    CHECK(bytes == static_cast<double>(level.on_host));
  }
  auto const& inputs = w.levels.back();
  CHECK(inputs.offloading == recompute::inputs_offloaded);
  CHECK(inputs.on_host == 5 * 512 * 256 * 2);
  CHECK(inputs.name.ends_with("results of 5 of 8 blocks go to the host"));
  CHECK(w.levels.front().recompute[1].gemms == 0.0);
  shape.recompute = recompute::choice::every_block;
  CHECK(inputs.activations <
        train::workload_of(train::dry_model_of<bfloat16>(device, m), shape).levels[0].activations);

  // A smaller micro-batch moves less, and nothing if it fits so.
  shape.recompute = recompute::choice::offload;
  auto const expecting = [&](std::int64_t rows) {
    shape.expected = train::expected_step{{rows, 64}, rows};
    return train::workload_of(train::dry_model_of<bfloat16>(device, m), shape).levels.back();
  };
  auto const smaller = expecting(480), small = expecting(256);
  CHECK(smaller.on_host == inputs.on_host);
  CHECK(smaller.activations == inputs.activations);
  CHECK(smaller.buffers > inputs.buffers);
  CHECK(std::count(smaller.leaving.begin(), smaller.leaving.end(), 0.0) == 2 + smaller.buffers);
  CHECK(small.buffers == 0);
  CHECK(small.leaving.empty());
  CHECK(small.recompute[1].gemms <= inputs.recompute[1].gemms / 2.0);
}

}  // namespace
