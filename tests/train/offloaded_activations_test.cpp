// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/offloaded.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/placed_training.hpp"
#include "support/precisions.hpp"
#include "support/sanitizer.hpp"
#include "support/small_inputs.hpp"

#include <vector>

namespace {

using namespace superoffload;
using recompute::choice;
using test::batch_of;
using test::everything;
using test::offloading_case;
using test::some_weights;
using test::train;

model::config const deep = test::placed_llama(6);

template <class P>
using simple_engine = train::engine<model::llama, P>;
template <class P>
using offloading_engine = train::engine<model::llama, P, zero::offloaded, offload::super>;
using keeps_inputs_on_host = train::engine<model::llama, precision::bf16, recompute::offload>;

train::engine_options options_with(double max_norm, bool accumulates) {
  return {.max_grad_norm = max_norm, .max_rows = 12, .max_positions = 12, .accumulates = accumulates};
}

/// Of all six blocks' results; of those of some functions and the blocks' inputs; of the inputs alone.
std::vector<autograd::activation_offloading> const ways{{2, -1}, {2, 0}, {3, 3}, {5, 1}, {6, -1}};

TEST_CASE_TEMPLATE(
    "an engine whose blocks keep activations in host memory trains bit for bit like one that keeps "
    "them on the device",
    P, SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  int const steps = test::under_sanitizer ? 12 : 40;
  for (double const max_norm : {1e9, 0.3, 0.05}) {
    for (bool const accumulates : {false, true}) {
      auto options = options_with(max_norm, accumulates);
      options.recompute = choice::none;
      simple_engine<P> simple{device, deep, options};
      simple.initialize(some_weights);
      auto const expected = train(simple, 0, steps, accumulates, true);
      CHECK(expected.skipped > 0);
      auto const state = everything(simple);
      for (auto const how : {choice::offload, choice::automatic}) {
        for (auto const& way : ways) {
          CAPTURE(way.buffers);
          CAPTURE(way.kept);
          options.recompute = how;
          options.configuration = {};
          options.configuration.activations = way;
          simple_engine<P> offloading{device, deep, options};
          offloading.initialize(some_weights);
          CHECK((offloading.allocation().activations_on_host > 0) == (way.buffers < 6));
          REQUIRE(train(offloading, 0, steps, accumulates, true) == expected);
          REQUIRE(everything(offloading) == state);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("activations, weights, gradients and state leave the device together", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  for (bool const accumulates : {false, true}) {
    std::vector<offloading_case> all;
    for (auto const& way : ways) {
      all.push_back({.offloaded = offloading_case::units::all,
                     .tiers = "hs",
                     .weight_buffers = 2,
                     .gradient_buffers = 3,
                     .activations = way});
    }
    test::check_same_bits<simple_engine<P>, offloading_engine<P>>(
        device, deep, options_with(0.3, accumulates), 25, true, all);
  }
}

TEST_CASE("documents that share a row keep their bits when activations leave the device") {
  auto packed = batch_of({1, 2, 3, 4, 5, 6, 7, 8});
  packed.positions = {0, 1, 2, 0, 1, 2, 3, 4};
  packed.targets = {2, 3, -1, 5, 6, 7, 8, -1};
  packed.starts = {0, 3, 8};
  cpu::device device{2};
  auto const train_packed = [&](auto& engine) {
    engine.initialize(some_weights);
    std::vector<double> losses;
    for (int step = 0; step < 8; ++step) {
      engine.begin_step(6, 1, 1e-2);
      losses.push_back(engine.forward(packed));
      engine.backward();
      losses.push_back(engine.step(1e-2).grad_norm);
    }
    return losses;
  };
  simple_engine<precision::bf16> simple{device, deep, options_with(1.0, false)};
  keeps_inputs_on_host offloading{device, deep, options_with(1.0, false)};
  CHECK(train_packed(offloading) == train_packed(simple));
  CHECK(everything(offloading) == everything(simple));
}

TEST_CASE("an engine that offloads activations allocates what its plan says, of both memories") {
  for (auto const& way : ways) {
    CAPTURE(way.buffers);
    cpu::device device{2};
    auto options = options_with(1.0, true);
    options.recompute = choice::offload;
    options.configuration.activations = way;
    simple_engine<precision::bf16> e{device, deep, options};
    e.initialize(some_weights);
    train(e, 0, 3, true, false);
    CHECK(static_cast<double>(device.peak_bytes()) ==
          doctest::Approx(static_cast<double>(e.allocation().total())).epsilon(0.03));
    CHECK(static_cast<double>(device.peak_bytes(memory::host)) ==
          doctest::Approx(static_cast<double>(e.allocation().host)).epsilon(0.03));
  }
}

TEST_CASE(
    "with their inputs in host memory, blocks take less of the device than with their inputs kept there") {
  cpu::device device{2};
  auto options = options_with(1.0, false);
  keeps_inputs_on_host const offloading{device, deep, options};
  options.recompute = choice::every_block;
  simple_engine<precision::bf16> const recomputing{device, deep, options};
  CHECK(offloading.allocation().activations < recomputing.allocation().activations);
  // Three buffers for six blocks: three inputs, of 12 tokens in bf16, leave the device.
  CHECK(offloading.allocation().activations_on_host == 3 * 512);
  CHECK(recomputing.allocation().activations_on_host == 0);
}

}  // namespace
