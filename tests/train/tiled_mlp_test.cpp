// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/described_device.hpp>
#include <superoffload/model/gpt_oss.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/planning/step_workload.hpp>
#include <superoffload/zero/offloaded.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/placed_training.hpp"
#include "support/precisions.hpp"
#include "support/sanitizer.hpp"
#include "support/small_inputs.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

// MLPs that compute some rows at a time: model::config::tiled_mlp.

namespace {

using namespace superoffload;
using recompute::choice;
using test::placed_options;
using test::some_weights;

model::config config_of(std::int64_t tiled_mlp, gemm_format gemms = gemm_format::element) {
  auto c = test::placed_llama();
  c.mlp_bias = true;
  c.gemms = gemms;
  c.tiled_mlp = tiled_mlp;
  return c;
}

template <class P>
using simple_engine = train::engine<model::llama, P>;
template <class P>
using offloading_engine = train::engine<model::llama, P, zero::offloaded, offload::super>;

template <class P>
void check_placements(gemm_format gemms) {
  cpu::device device{2};
  int const steps = test::under_sanitizer ? 6 : 18;
  for (bool const accumulates : {false, true}) {
    test::check_same_bits<simple_engine<P>, offloading_engine<P>>(
        device, config_of(2, gemms), placed_options(0.3, accumulates), steps, true, test::places);
  }
}

TEST_CASE_TEMPLATE("MLPs in tiles have the same bits wherever state, weights and activations live", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  check_placements<P>(gemm_format::element);
}

TEST_CASE("MLPs in tiles have the same bits in every place with FP8 GEMMs, too") {
  check_placements<precision::bf16>(gemm_format::float8);
}

TEST_CASE_TEMPLATE("MLPs in tiles have the same bits when blocks are computed again", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  test::check_recompute<simple_engine<P>>(device, config_of(2), 8);
}

TEST_CASE_TEMPLATE("a model with MLPs in tiles trains as one without", P, SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  auto const losses = [&](std::int64_t tiled_mlp) {
    simple_engine<P> engine{device, config_of(tiled_mlp), placed_options(1.0, false)};
    engine.initialize(some_weights);
    std::vector<double> all;
    for (int step = 0; step < 20; ++step) {
      engine.begin_step(9, 1, 3e-3);
      all.push_back(engine.forward(test::batch_of({1, 7, 3, 9, 5, 11, 2, 6, 4, 8})));
      engine.backward();
      engine.step(3e-3);
    }
    return all;
  };
  auto const whole = losses(0);
  double const tolerance = std::is_same_v<P, precision::fp32> ? 1e-5 : 1e-2;
  for (std::int64_t const rows : {1, 4, 100}) {
    CAPTURE(rows);
    auto const tiled = losses(rows);
    CHECK(tiled.back() < 0.96 * tiled.front());
    for (std::size_t step = 0; step < whole.size(); ++step) {
      CHECK(tiled[step] == doctest::Approx(whole[step]).epsilon(tolerance));
    }
  }
}

TEST_CASE("an engine whose MLPs have tiles takes the memory that it plans, which is less") {
  auto const activations = [](std::int64_t tiled_mlp) {
    cpu::device device{2};
    auto c = config_of(tiled_mlp);
    c.max_positions = 512;
    auto o = placed_options(1.0, true);
    o.max_rows = o.max_positions = 512;
    o.recompute = choice::every_block;
    simple_engine<precision::bf16> engine{device, c, o};
    engine.initialize(some_weights);
    test::train(engine, 0, 3, true, false);
    CHECK(static_cast<double>(device.peak_bytes()) ==
          doctest::Approx(static_cast<double>(engine.allocation().total())).epsilon(0.03));
    return engine.allocation().activations;
  };
  CHECK(activations(16) < activations(0) * 9 / 10);
}

TEST_CASE("a workload counts the gates that a backward of tiles computes again") {
  described_device const device{"described", std::size_t{80} << 30};
  auto const work = [&](std::int64_t tiled_mlp) {
    model::llama const model{config_of(tiled_mlp)};
    return train::workload_of(train::dry_model_of<bfloat16>(device, model), {.micro_batch = {4096, 4096}})
        .units[2];
  };
  auto const whole = work(0), tiled = work(512);
  double const gates = 2.0 * 4096 * (2 * 24 * 16), down = 2.0 * 4096 * (24 * 16);
  CHECK(tiled.forward.gemms == doctest::Approx(whole.forward.gemms));
  CHECK(tiled.backward.gemms == doctest::Approx(whole.backward.gemms + gates));
  auto narrow = config_of(512, gemm_format::float8);
  model::llama const model{narrow};
  auto const in_float8 =
      train::workload_of(train::dry_model_of<bfloat16>(device, model), {.micro_batch = {4096, 4096}})
          .units[2];
  CHECK(in_float8.backward.float8 == doctest::Approx(whole.backward.gemms + gates + down));
}

TEST_CASE("tiles are refused for a model without a dense MLP") {
  auto c = config_of(512);
  c.model_type = "gpt_oss";
  c.mlp_bias = false;
  c.experts = 4;
  c.experts_per_token = 2;
  CHECK_THROWS_WITH_AS(model::gpt_oss{c},
                       "--tiled_mlp is 512, but the layers of model_type 'gpt_oss' have no MLP of "
                       "layer_layout::mlp; expected 0",
                       error);
}

}  // namespace
