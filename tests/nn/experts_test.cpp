// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/experts.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <algorithm>

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace kernel = superoffload::kernel;
namespace nn = superoffload::nn;

constexpr std::int64_t hidden = 6, intermediate = 5, count = 4;

/// As in qwen3_moe: no biases, matrices [out, in].
nn::experts plain(unit_layout& unit, std::int32_t each, bool normalised) {
  return {.router = {unit.add_matrix({{"router", count}}, hidden)},
          .gate_up = unit.add_matrix({{"gate_up", count * 2 * intermediate}}, hidden),
          .down = unit.add_matrix({{"down", count * hidden}}, intermediate),
          .count = count,
          .intermediate = intermediate,
          .each = each,
          .normalised = normalised};
}

/// As in gpt_oss: biases everywhere, matrices [in, out], the clamped gate.
nn::experts with_biases(unit_layout& unit, std::int32_t each) {
  return {.router = {unit.add_matrix({{"router", count}}, hidden), unit.add_vector("router_bias", count)},
          .gate_up = unit.add_matrix({{"gate_up", count * hidden}}, 2 * intermediate),
          .down = unit.add_matrix({{"down", count * intermediate}}, hidden),
          .gate_up_bias = unit.add_matrix({{"gate_up_bias", count}}, 2 * intermediate),
          .down_bias = unit.add_matrix({{"down_bias", count}}, hidden),
          .count = count,
          .intermediate = intermediate,
          .each = each,
          .gate = kernel::expert_gate::clamped,
          .gate_limit = 7.0,
          .layout = nn::expert_layout::in_out};
}

TEST_CASE("a mixture of experts has the gradient of its formula") {
  unit_layout unit{0, "unit"};
  SUBCASE("weights that add up to 1") {
    auto const e = plain(unit, 2, true);
    graph g{{unit}};
    check_function(g, g.random(9 * hidden), hidden, [&](graph::variable x) { return e.onto(x, x); });
  }
  SUBCASE("weights of a softmax over all experts") {
    auto const e = plain(unit, 3, false);
    graph g{{unit}};
    check_function(g, g.random(9 * hidden), hidden, [&](graph::variable x) { return e.onto(x, x); });
  }
  SUBCASE("every expert of every token") {
    auto const e = plain(unit, count, true);
    graph g{{unit}};
    check_function(g, g.random(3 * hidden), hidden, [&](graph::variable x) { return e.onto(x, x); });
  }
  SUBCASE("one token: most experts have none") {
    auto const e = plain(unit, 1, false);
    graph g{{unit}};
    check_function(g, g.random(hidden), hidden, [&](graph::variable x) { return e.onto(x, x); });
  }
  SUBCASE("biases, transposed matrices, and values beyond the clamp") {
    auto const e = with_biases(unit, 2);
    graph g{{unit}};
    auto x_values = g.random(9 * hidden);
    for (auto& value : x_values) { value *= 8; }
    check_function(g, x_values, hidden, [&](graph::variable x) { return e.onto(x, x); });
  }
}

TEST_CASE("a mixture of experts adds the weighted results of the chosen experts to its residual") {
  unit_layout unit{0, "unit"};
  auto const e = plain(unit, 2, true);
  graph g{{unit}};
  auto const x_values = g.random(5 * hidden);
  std::vector<double> router(g.weights(0, g.units()[0].tensors()[0]).begin(),
                             g.weights(0, g.units()[0].tensors()[0]).end());
  auto const gate_up = g.weights(0, g.units()[0].tensors()[1]);
  auto const down = g.weights(0, g.units()[0].tensors()[2]);
  g.on.reset(false);
  auto const x = g.input(x_values, hidden);
  auto const y = g.on.scope({0}, superoffload::autograd::pass::forward, [&] { return e.onto(x, x); });
  g.stream.synchronize();
  for (std::int64_t row = 0; row < 5; ++row) {
    auto const* const in = &x_values[static_cast<std::size_t>(row * hidden)];
    std::vector<std::pair<double, std::int64_t>> logits;
    for (std::int64_t i = 0; i < count; ++i) {
      double logit = 0;
      for (std::int64_t h = 0; h < hidden; ++h) { logit += router[i * hidden + h] * in[h]; }
      logits.emplace_back(-logit, i);
    }
    std::sort(logits.begin(), logits.end());
    std::vector<double> expected(in, in + hidden);
    double const total = std::exp(-logits[0].first) + std::exp(-logits[1].first);
    for (int c = 0; c < 2; ++c) {
      auto const [minus_logit, expert] = logits[c];
      auto const* const first = &gate_up[static_cast<std::size_t>(expert * 2 * intermediate * hidden)];
      auto const* const second = &down[static_cast<std::size_t>(expert * hidden * intermediate)];
      for (std::int64_t i = 0; i < intermediate; ++i) {
        double gate = 0, up = 0;
        for (std::int64_t h = 0; h < hidden; ++h) {
          gate += first[i * hidden + h] * in[h];
          up += first[(intermediate + i) * hidden + h] * in[h];
        }
        double const inside = gate / (1 + std::exp(-gate)) * up * std::exp(-minus_logit) / total;
        for (std::int64_t h = 0; h < hidden; ++h) { expected[h] += second[h * intermediate + i] * inside; }
      }
    }
    for (std::int64_t h = 0; h < hidden; ++h) {
      CHECK(y.value()[row * hidden + h] == doctest::Approx(expected[h]).epsilon(1e-12));
    }
  }
}

TEST_CASE("experts without a token have a gradient of zero, also after another micro-batch") {
  unit_layout unit{0, "unit"};
  auto const e = plain(unit, 1, true);
  graph g{{unit}};
  auto const router = g.weights(0, g.units()[0].tensors()[0]);
  std::fill(router.begin(), router.end(), 0.0);  // all logits equal: every token goes to expert 0
  auto const gradient = g.gradient(0, g.units()[0].tensors()[1]);
  auto const* const start = gradient.data();
  std::fill(const_cast<double*>(start), const_cast<double*>(start) + gradient.size(), 7.0);
  g.on.reset();
  g.on.forget_gradients();
  auto const x = g.input(g.random(5 * hidden), hidden);
  auto const y = g.on.scope({0}, superoffload::autograd::pass::forward, [&] { return e.onto(x, x); });
  y.adopt_gradient(g.on.allocate<double>(y.count()));
  g.stream.copy(y.gradient(), y.value(), static_cast<std::size_t>(y.count()) * sizeof(double));
  g.on.backward();
  g.stream.synchronize();
  std::size_t const of_expert = 2 * intermediate * hidden;
  CHECK(std::any_of(start, start + of_expert, [](double v) { return v != 0 && v != 7; }));
  CHECK(std::all_of(start + of_expert, start + gradient.size(), [](double v) { return v == 0.0; }));
}

}  // namespace
