// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/experts.hpp>
#include <superoffload/nn/load_balancing.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using superoffload::autograd::pass;
using superoffload::autograd::unit_layout;
using superoffload::test::graph;
namespace nn = superoffload::nn;

constexpr std::int64_t hidden = 6, intermediate = 5, count = 4, rows = 9;

nn::experts layer(unit_layout& unit, std::string const& name) {
  return {.router = {unit.add_matrix({{name + ".router", count}}, hidden)},
          .gate_up = unit.add_matrix({{name + ".gate_up", count * 2 * intermediate}}, hidden),
          .down = unit.add_matrix({{name + ".down", count * hidden}}, intermediate),
          .count = count,
          .intermediate = intermediate,
          .each = 2};
}

/// Two layers with experts around one without, and nothing but their load-balancing loss.
struct layers {
  unit_layout unit{0, "unit"};
  nn::experts first = layer(unit, "first"), last = layer(unit, "last");
  graph g{{unit}};
  std::vector<double> x = g.random(rows * hidden);
  std::vector<std::int32_t> padding = std::vector<std::int32_t>(rows, 0);
  nn::batch batch{.rows = rows, .divisor = 7};

  layers() { batch.padding = padding.data(); }

  double loss(bool with_backward) {
    g.on.reset(true);
    nn::load_balancing const balancing{g.on, batch, 3, count, 2};
    auto const input = g.input(x, hidden);
    auto const y = g.on.scope({0}, pass::forward, [&] {
      auto const inside = first.onto(input, input, balancing.of(0));
      return last.onto(inside, inside, balancing.of(2));
    });
    nn::loss_sum const sum{g.on.allocate<double>(1)};
    g.on.fill_zero(sum.total, sizeof(double));
    balancing.add_to(g.on, sum, 0.5);
    if (with_backward) {
      y.adopt_gradient(g.on.allocate<double>(y.count()));
      g.on.fill_zero(y.gradient(), static_cast<std::size_t>(y.count()) * sizeof(double));
      g.on.forget_gradients();
      g.on.backward();
    }
    g.stream.synchronize();
    return *sum.total / static_cast<double>(batch.divisor);
  }
};

TEST_CASE("the load-balancing loss of several layers has the gradient of its formula") {
  layers l;
  SUBCASE("of every token") {}
  SUBCASE("without padding") { l.padding[2] = l.padding[8] = 1; }
  l.loss(true);
  std::vector<std::vector<double>> gradients;
  double largest_of_first_router = 0.0;
  for (auto const& tensor : l.g.units()[0].tensors()) {
    auto const gradient = l.g.gradient(0, tensor);
    gradients.emplace_back(gradient.begin(), gradient.end());
    for (double const d : gradients.back()) {
      largest_of_first_router = tensor.name == "first.router" ? std::max(largest_of_first_router, std::abs(d))
                                                              : largest_of_first_router;
    }
  }
  CHECK(largest_of_first_router > 1e-3);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    superoffload::test::check_derivatives(l.g.weights(0, l.g.units()[0].tensors()[i]), gradients[i],
                                          [&] { return l.loss(false); });
  }
}

TEST_CASE("without rows that count, the load-balancing loss and its gradient are 0") {
  layers l;
  std::ranges::fill(l.padding, 1);
  CHECK(l.loss(true) == 0.0);
  for (auto const& tensor : l.g.units()[0].tensors()) {
    for (double const d : l.g.gradient(0, tensor)) { CHECK(d == 0.0); }
  }
}

TEST_CASE("no load-balancing loss is the default") {
  nn::load_balancing const none;
  CHECK_FALSE(static_cast<bool>(none));
  CHECK_FALSE(none.of(3).wanted);
}

}  // namespace
