// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/planning/step_plan.hpp>
#include <superoffload/train/planning/step_workload.hpp>
#include <superoffload/zero/offloaded.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/placed_training.hpp"
#include "support/sanitizer.hpp"
#include "support/small_inputs.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using simple_engine = train::engine<model::llama, precision::bf16>;
using offloading_engine = train::engine<model::llama, precision::bf16, zero::offloaded, offload::super>;
using test::placed_options;
using test::some_weights;

model::config const in_bfloat16 = test::placed_llama();
model::config const in_float8 = [] {
  auto c = in_bfloat16;
  c.gemms = gemm_format::float8;
  return c;
}();

TEST_CASE("FP8 GEMMs have the same bits wherever state, weights and activations live") {
  cpu::device device{2};
  int const steps = test::under_sanitizer ? 12 : 30;
  for (double const max_norm : {1e9, 0.3}) {
    for (bool const accumulates : {false, true}) {
      auto const seen = test::check_same_bits<simple_engine, offloading_engine>(
          device, in_float8, placed_options(max_norm, accumulates), steps, true, test::places);
      CHECK(seen.skipped > 0);
    }
  }
}

TEST_CASE("FP8 GEMMs have the same bits when they are computed again") {
  cpu::device device{3};
  test::check_recompute<simple_engine>(device, in_float8, 12);
}

TEST_CASE("a model with FP8 GEMMs learns as one in bfloat16 does, with other bits") {
  cpu::device device{2};
  auto const losses = [&](model::config const& config) {
    simple_engine engine{device, config, placed_options(1.0, false)};
    engine.initialize(some_weights);
    std::vector<double> all;
    for (int step = 0; step < 60; ++step) {
      engine.begin_step(9, 1, 3e-3);
      all.push_back(engine.forward(test::batch_of({1, 7, 3, 9, 5, 11, 2, 6, 4, 8})));
      engine.backward();
      engine.step(3e-3);
    }
    return all;
  };
  auto const exact = losses(in_bfloat16), rounded = losses(in_float8);
  CHECK(rounded != exact);
  CHECK(exact.back() < 0.75 * exact.front());
  for (std::size_t step = 0; step < exact.size(); ++step) {
    CHECK(rounded[step] == doctest::Approx(exact[step]).epsilon(0.1));
  }
}

TEST_CASE("an engine with FP8 GEMMs takes the memory that it plans") {
  cpu::device device{2};
  simple_engine engine{device, in_float8, placed_options(1.0, true)};
  engine.initialize(some_weights);
  test::train(engine, 0, 3, true, false);
  CHECK(static_cast<double>(device.peak_bytes()) ==
        doctest::Approx(static_cast<double>(engine.allocation().total())).epsilon(0.03));
  CHECK(engine.allocation().activations >
        simple_engine{device, in_bfloat16, placed_options(1.0, true)}.allocation().activations);
}

TEST_CASE("FP8 GEMMs are refused where there are none") {
  cpu::device device{1};
  using in_float32 = train::engine<model::llama, precision::fp32>;
  CHECK_THROWS_WITH_AS((in_float32{device, in_float8, placed_options(1.0, false)}),
                       "FP8 GEMMs are for models in bfloat16: expected precision::bf16", error);
  struct old_gpu : described_device {
    old_gpu() : described_device{"an old GPU", 1} {}
    [[nodiscard]] static bool multiplies_float8() { return false; }
  };
  CHECK_THROWS_WITH_AS((train::expect_gemms<bfloat16>(old_gpu{}, in_float8)),
                       "--dtype fp8: an old GPU has no FP8 GEMMs; expected an NVIDIA GPU of compute "
                       "capability 8.9 or more (Ada, Hopper, Blackwell), or --dtype bf16",
                       error);
  train::expect_gemms<bfloat16>(old_gpu{}, in_bfloat16);
}

TEST_CASE("a plan of FP8 GEMMs takes their rate, which the machine's description must have") {
  described_device const device{"described", std::size_t{80} << 30};
  auto big = in_float8;
  big.vocabulary = 32000;
  big.hidden = 4096;
  big.intermediate = 14336;
  big.heads = 32;
  big.kv_heads = 8;
  big.head_dim = 128;
  auto slow = big;
  slow.gemms = gemm_format::element;
  model::llama const narrow{big}, wide{slow};
  offload::machine m;
  m.name = "described";
  m.device.memory = std::size_t{80} << 30;
  m.device.gemms = 600e12;
  m.device.attention_forward = m.device.attention_backward = 400e12;
  m.device.bandwidth = 3e12;
  m.device.round_trip = 1e-5;
  m.host.memory = std::size_t{100} << 30;
  m.host.cores = 16;
  train::step_shape const shape{.micro_batch = {8192, 2048}};
  offload::settings const none{.how = offload::mode::none};
  auto const time_of = [&](model::llama const& model) {
    return train::plan_step(train::dry_model_of<bfloat16>(device, model), shape, m, none).step_time;
  };
  CHECK_THROWS_WITH_AS(
      time_of(narrow),
      "machine 'described': device.float8_gemms_tflops is missing: expected the rate of FP8 GEMMs, for "
      "--dtype fp8",
      error);
  m.device.float8_gemms = 1200e12;
  double const in_bf16 = time_of(wide), in_fp8 = time_of(narrow);
  CHECK(in_fp8 < 0.8 * in_bf16);
  CHECK(in_fp8 > 0.5 * in_bf16);
  m.device.float8_gemms = 600e12;
  CHECK(time_of(narrow) > in_bf16);  // the same GEMMs, and rounding
}

}  // namespace
