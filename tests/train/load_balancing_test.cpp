// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/batch.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/train/engine.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/small_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace {

using namespace superoffload;

model::config small(double weight) {
  model::config c{.model_type = "qwen3_moe",
                  .vocabulary = 19,
                  .hidden = 32,
                  .intermediate = 12,
                  .layers = 2,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = 8,
                  .max_positions = 64};
  c.experts = 8;
  c.experts_per_token = 2;
  c.load_balancing_weight = weight;
  return c;
}

struct outcome {
  std::vector<double> losses{};  ///< of each micro-batch
  std::vector<float> gradient{};
};

/// A step of the given micro-batches.
outcome stepped(double weight, std::vector<data::batch> const& micro_batches, std::int64_t label_tokens) {
  cpu::device device{2};
  train::engine<model::qwen3_moe, precision::fp32> e{
      device, small(weight), {.max_rows = 32, .max_positions = 32, .accumulates = micro_batches.size() > 1}};
  e.initialize(test::some_weights);
  e.begin_step(label_tokens, std::ssize(micro_batches));
  outcome made;
  for (auto const& batch : micro_batches) {
    made.losses.push_back(e.forward(batch));
    e.backward();
  }
  e.step(0.0);
  for (auto const& unit : e.model().units()) {
    std::vector<float> part(static_cast<std::size_t>(unit.elements()));
    e.read_gradient(unit, 0, part);
    made.gradient.insert(made.gradient.end(), part.begin(), part.end());
  }
  return made;
}

TEST_CASE(
    "every micro-batch adds its own load-balancing loss to a step, and nothing divides by their number") {
  auto const first = test::batch_of({1, 5, 2, 7, 7, 3, 11}), second = test::batch_of({4, 18, 4, 9});
  auto const labels = first.label_tokens() + second.label_tokens();
  auto const both = stepped(0.5, {first, second}, labels);
  auto const one = stepped(0.5, {first}, labels), other = stepped(0.5, {second}, labels);
  auto const plain = stepped(0.0, {first, second}, labels);
  CHECK(both.losses[0] == one.losses[0]);
  CHECK(both.losses[1] == other.losses[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    // With two experts of a token the loss is about 2, and at most the number of experts.
    auto const own = both.losses[i] - plain.losses[i];
    CHECK(own > 0.5 * 1.0);
    CHECK(own < 0.5 * 8.0);
  }
  double largest = 0.0;
  for (std::size_t i = 0; i < both.gradient.size(); ++i) {
    CHECK(both.gradient[i] == doctest::Approx(one.gradient[i] + other.gradient[i]).epsilon(1e-5).scale(0.1));
    largest = std::max(largest, double{std::abs(both.gradient[i] - plain.gradient[i])});
  }
  CHECK(largest > 1e-3);
}

TEST_CASE("an evaluation has no load-balancing loss") {
  cpu::device device{2};
  using engine = train::engine<model::qwen3_moe, precision::fp32>;
  engine with{device, small(0.5), {.max_rows = 32, .max_positions = 32}},
      without{device, small(0.0), {.max_rows = 32, .max_positions = 32}};
  with.initialize(test::some_weights);
  without.initialize(test::some_weights);
  auto const batch = test::batch_of({1, 5, 2, 7, 7, 3, 11});
  CHECK(with.evaluate(batch) == without.evaluate(batch));
  CHECK(with.forward(batch) > without.forward(batch) + 0.1);
}

}  // namespace
