// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/collate.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/train/engine.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/precisions.hpp"
#include "support/small_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace superoffload;

struct step {
  double loss, norm;
  std::vector<float> gradient;
};

model::config small(char const* type) {
  return {.model_type = type,
          .vocabulary = 19,
          .hidden = 32,
          .intermediate = 48,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .max_positions = 64};
}

/// A step on rows of 3 to 31 tokens; the padding is a token that rows have, too.
template <class P, class A = model::llama>
step trained(data::pad_to padding, model::config const& config = small("llama")) {
  data::example_set examples;
  for (int row = 0; row < 9; ++row) {
    std::vector<std::int32_t> tokens;
    for (int t = 0; t < 3 + row * 11 % 29; ++t) { tokens.push_back((row * 7 + t * t * 3) % 19); }
    examples.add(tokens, row % 4);
  }
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < examples.size(); ++row) { rows.push_back(row); }
  std::vector<data::sequence> sequences;
  for (auto const& row : rows) { sequences.emplace_back(&row, 1); }
  auto const batch = data::collate(examples, sequences, {.padding = padding, .max_length = 40, .pad_id = 3});

  cpu::device device{2};
  train::engine<A, P> e{device, config, {.max_rows = 9 * 40, .max_positions = 40}};
  e.initialize(test::some_weights);
  step made{e.forward(batch), 0.0, {}};
  e.backward();
  made.norm = e.step(0.0).grad_norm;
  for (auto const& unit : e.model().units()) {
    std::vector<float> part(static_cast<std::size_t>(unit.elements()));
    e.read_gradient(unit, 0, part);
    made.gradient.insert(made.gradient.end(), part.begin(), part.end());
  }
  return made;
}

void check_near(step const& padded, step const& plain, double tolerance) {
  CHECK(padded.loss == doctest::Approx(plain.loss).epsilon(tolerance));
  CHECK(padded.norm == doctest::Approx(plain.norm).epsilon(tolerance));
  double difference = 0.0, size = 0.0;
  REQUIRE(padded.gradient.size() == plain.gradient.size());
  for (std::size_t i = 0; i < plain.gradient.size(); ++i) {
    difference += std::pow(padded.gradient[i] - plain.gradient[i], 2);
    size += std::pow(plain.gradient[i], 2);
  }
  CHECK(std::sqrt(difference / size) < tolerance);
}

/// Padding adds rows without a target. Real rows come to other places of the blocks in which kernels work,
/// and gradients of weights are sums over all rows in such blocks: bits may differ everywhere.
TEST_CASE_TEMPLATE("padding changes losses and gradients by rounding only", P, SUPEROFFLOAD_TEST_PRECISIONS) {
  auto const tolerance = sizeof(typename P::element) == 2 ? 1e-2 : 1e-6;
  auto const plain = trained<P>(data::pad_to::none);
  REQUIRE(plain.norm > 0.0);
  for (auto const padding : {data::pad_to::longest, data::pad_to::max_length}) {
    check_near(trained<P>(padding), plain, tolerance);
  }
}

TEST_CASE("padding changes the load-balancing loss of routers by rounding only") {
  auto c = small("qwen3_moe");
  c.intermediate = 12;
  c.experts = 8;
  c.experts_per_token = 2;
  auto const without = trained<precision::fp32, model::qwen3_moe>(data::pad_to::none, c);
  c.load_balancing_weight = 2.0;
  auto const plain = trained<precision::fp32, model::qwen3_moe>(data::pad_to::none, c);
  CHECK(plain.loss > without.loss + 2.0);
  for (auto const padding : {data::pad_to::longest, data::pad_to::max_length}) {
    check_near(trained<precision::fp32, model::qwen3_moe>(padding, c), plain, 1e-6);
  }
}

}  // namespace
