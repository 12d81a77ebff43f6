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

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using test::batch_of;
using test::configure;
using test::everything;
using test::move_state;
using test::offloading_case;
using test::some_weights;
using test::train;

model::config deep(bool tied) {
  return {.model_type = "llama",
          .vocabulary = 19,
          .hidden = 16,
          .intermediate = 24,
          .layers = 5,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .max_positions = 32,
          .tied_head = tied};
}

template <class P>
using simple_engine = train::engine<model::llama, P>;
template <class P>
using offloading_engine = train::engine<model::llama, P, zero::offloaded, offload::super>;

train::engine_options options_with(double max_norm, bool accumulates) {
  return {.max_grad_norm = max_norm,
          .max_rows = 12,
          .max_positions = 12,
          .accumulates = accumulates,
          .recompute = recompute::choice::every_block};
}

constexpr double never = 1e9, sometimes = 0.3, always = 0.05;
constexpr int many_steps = test::under_sanitizer ? 60 : 200;

TEST_CASE_TEMPLATE("an engine with its weights in host memory trains bit for bit like one without", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  for (bool const tied : {false, true}) {
    for (double const max_norm : {never, sometimes, always}) {
      int const steps = tied ? 25 : many_steps;
      auto const expected = test::check_same_bits<simple_engine<P>, offloading_engine<P>>(
          device, deep(tied), options_with(max_norm, false), steps, true,
          {{},
           {.offloaded = offloading_case::units::all, .weight_buffers = 2},
           {.tiers = "s", .weight_buffers = 1},
           {.offloaded = offloading_case::units::all, .tiers = "hs", .gradient_buffers = 3},
           {.tiers = "rhs", .weight_buffers = 9, .gradient_buffers = 2}});
      CHECK((expected.clipped > 0) == (max_norm != never));
      CHECK((expected.free > 0) == (max_norm != always));
      CHECK(expected.skipped > 0);
    }
  }
}

TEST_CASE_TEMPLATE("sums in host memory give the bits of those that stay on the device", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  for (bool const tied : {false, true}) {
    for (double const max_norm : {never, sometimes, always}) {
      int const steps = tied ? 25 : many_steps;
      // A tied table's gradient is written by the first and by the last unit of a backward.
      std::vector<offloading_case> const all{
          {.gradient_buffers = tied ? 2 : 1},
          {.offloaded = offloading_case::units::all, .tiers = "hs", .gradient_buffers = 3},
          {.tiers = "rh", .weight_buffers = 2, .gradient_buffers = 9}};
      for (auto const& how : all) {
        auto const leave = configure(model::llama{deep(tied)}.units(), how).offloaded.gradients;
        CHECK(std::count(leave.begin(), leave.end(), true) > 2);
      }
      auto const expected = test::check_same_bits<simple_engine<P>, offloading_engine<P>>(
          device, deep(tied), options_with(max_norm, true), steps, true, all);
      CHECK(((expected.clipped > 0) == (max_norm != never) || tied));
      CHECK((expected.free > 0) == (max_norm != always));
      CHECK(expected.skipped > 0);
    }
  }
}

TEST_CASE("offloaded weights are exact with every recompute and number of micro-batches") {
  cpu::device device{2};
  for (auto const recompute : {recompute::choice::none, recompute::choice::automatic,
                               recompute::choice::every_block, recompute::choice::offload}) {
    auto options = options_with(sometimes, true);
    options.recompute = recompute;
    simple_engine<precision::bf16> simple{device, deep(false), options};
    simple.initialize(some_weights);
    auto const expected = train(simple, 0, 10, true, true);
    for (int const gradient_buffers : {0, 2}) {
      options.configuration =
          configure(simple.model().units(), {.tiers = "hs", .gradient_buffers = gradient_buffers});
      offloading_engine<precision::bf16> offloading{device, deep(false), options};
      offloading.initialize(some_weights);
      CHECK(train(offloading, 0, 10, true, true) == expected);
      CHECK(everything(offloading) == everything(simple));
    }
  }
}

TEST_CASE("buckets of all tiers are updated as their gradients become final, in two gradient buffers") {
  cpu::device device{2};
  for (bool const accumulates : {false, true}) {
    for (auto const* tiers : {"h", "s", "rhs"}) {
      CAPTURE(accumulates);
      CAPTURE(tiers);
      auto options = options_with(0.0, accumulates);
      simple_engine<precision::bf16> simple{device, deep(true), options};
      simple.initialize(some_weights);
      auto const expected = train(simple, 0, 12, accumulates, false);
      options.configuration =
          configure(simple.model().units(), {.tiers = tiers, .gradient_buffers = 2, .immediate = true});
      offloading_engine<precision::bf16> offloading{device, deep(true), options};
      offloading.initialize(some_weights);
      CHECK(offloading.allocation().gradients < simple.allocation().gradients);
      CHECK(train(offloading, 0, 12, accumulates, false) == expected);
      CHECK(everything(offloading) == everything(simple));
    }
  }
}

TEST_CASE("state moves between engines with weights in different memories, in the middle of a run") {
  cpu::device device{2};
  auto options = options_with(sometimes, false);
  simple_engine<precision::bf16> simple{device, deep(false), options};
  simple.initialize(some_weights);
  auto const expected = train(simple, 0, 4, false, false);
  train(simple, 4, 8, false, false);

  options.configuration = configure(simple.model().units(), {.tiers = "hs", .gradient_buffers = 3});
  offloading_engine<precision::bf16> offloading{device, deep(false), options};
  offloading.initialize(some_weights);
  CHECK(train(offloading, 0, 4, false, false) == expected);
  simple_engine<precision::bf16> resident{device, deep(false), options_with(sometimes, false)};
  resident.initialize([](auto const&, auto, auto to) { std::fill(to.begin(), to.end(), 1.0F); });
  move_state(offloading, resident);
  train(resident, 4, 4, false, false);
  move_state(resident, offloading);
  train(offloading, 8, 4, false, false);
  CHECK(everything(offloading) == everything(simple));
}

TEST_CASE("an engine with offloaded weights and gradients allocates what its plan says, of both memories") {
  for (offloading_case const& how :
       {offloading_case{}, offloading_case{.tiers = "s", .weight_buffers = 2},
        offloading_case{.offloaded = offloading_case::units::all, .tiers = "hs", .gradient_buffers = 2}}) {
    for (bool const accumulates : {false, true}) {
      cpu::device device{2};
      auto options = options_with(1.0, accumulates);
      options.configuration = configure(model::llama{deep(false)}.units(), how);
      offloading_engine<precision::bf16> e{device, deep(false), options};
      e.initialize(some_weights);
      CHECK(static_cast<double>(device.bytes_in_use()) ==
            doctest::Approx(static_cast<double>(e.allocation().total())).epsilon(0.03));
      CHECK(static_cast<double>(device.bytes_in_use(memory::host)) ==
            doctest::Approx(static_cast<double>(e.allocation().host)).epsilon(0.03));
      train(e, 0, 3, accumulates, false);
      CHECK(static_cast<double>(device.peak_bytes()) ==
            doctest::Approx(static_cast<double>(e.allocation().total())).epsilon(0.03));
    }
  }
}

TEST_CASE("a step without labels changes nothing, also in the immediate mode") {
  cpu::device device{2};
  auto options = options_with(0.0, false);
  options.configuration =
      configure(model::llama{deep(false)}.units(), {.tiers = "hs", .gradient_buffers = 2, .immediate = true});
  offloading_engine<precision::bf16> e{device, deep(false), options};
  e.initialize(some_weights);
  train(e, 0, 2, false, false);
  auto const before = everything(e);
  auto batch = batch_of({1, 2, 3});
  batch.targets = {-1, -1, -1};
  e.begin_step(0, 1, 1e-2);
  e.forward(batch);
  e.backward();
  auto const result = e.step(1e-2);
  CHECK_FALSE(result.accepted);
  CHECK(result.grad_norm == 0.0);
  CHECK(everything(e) == before);
  train(e, 2, 2, false, false);
  CHECK(everything(e) != before);
}

TEST_CASE("offloading that an engine does not support is refused with a message") {
  cpu::device device{1};
  auto const units = model::llama{deep(false)}.units();
  auto options = options_with(1.0, false);
  options.configuration = configure(units, {.gradient_buffers = 2});
  using resident = train::engine<model::llama, precision::fp32, offload::super>;
  CHECK_THROWS_WITH_AS((resident{device, deep(false), options}),
                       doctest::Contains("expected zero::offloaded"), error);
  offloading_engine<precision::fp32> e{device, deep(false), options};
  e.initialize(some_weights);
  train(e, 0, 1, false, false);
  std::vector<float> gradient(16);
  CHECK_THROWS_WITH_AS(e.read_gradient(e.model().units()[5], 0, gradient),
                       doctest::Contains("has left the device"), error);
}

}  // namespace
