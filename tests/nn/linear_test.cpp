// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/linear.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace nn = superoffload::nn;

TEST_CASE("a linear layer with bias has the gradient of its formula") {
  unit_layout unit{0, "unit"};
  nn::linear const layer{unit.add_matrix({{"q", 3}, {"k", 4}}, 5), unit.add_vector("b", 7)};
  graph g{{unit}};
  check_function(g, g.random(4 * 5), 5, [&](graph::variable x) { return layer(x); });
}

TEST_CASE("a residual takes over the gradient of the sum") {
  unit_layout unit{0, "unit"};
  nn::linear const inner{unit.add_matrix({{"a", 6}}, 5)};
  nn::linear const outer{unit.add_matrix({{"b", 5}}, 6)};
  graph g{{unit}};
  check_function(g, g.random(3 * 5), 5, [&](graph::variable x) { return outer.onto(x, inner(x)); });
}

TEST_CASE("a residual that already has a gradient accumulates") {
  unit_layout unit{0, "unit"};
  nn::linear const first{unit.add_matrix({{"a", 5}}, 5)};
  nn::linear const second{unit.add_matrix({{"b", 5}}, 5)};
  graph g{{unit}};
  check_function(g, g.random(2 * 5), 5, [&](graph::variable x) { return second.onto(x, first.onto(x, x)); });
}

TEST_CASE("one layer used twice adds its gradients") {
  unit_layout unit{0, "unit"};
  nn::linear const layer{unit.add_matrix({{"a", 4}}, 4)};
  graph g{{unit}};
  check_function(g, g.random(3 * 4), 4, [&](graph::variable x) { return layer(layer(x)); });
}

TEST_CASE("a frozen layer passes the gradient on and has none") {
  unit_layout unit{0, "unit"};
  nn::linear frozen{unit.add_matrix({{"a", 4}}, 4)};
  nn::linear const free{unit.add_matrix({{"b", 4}}, 4)};
  frozen.weight.trainable = false;
  graph g{{unit}};
  g.on.reset();
  auto const x = g.input(g.random(8), 4);
  auto const y = g.on.scope({0}, superoffload::autograd::pass::forward, [&] { return free(frozen(x)); });
  y.adopt_gradient(g.on.allocate<double>(y.count()));
  g.stream.copy(y.gradient(), y.value(), 8 * sizeof(double));
  g.on.backward();
  g.stream.synchronize();
  for (double const value : g.gradient(0, g.units()[0].tensors()[0])) { CHECK(value == 0.0); }
  CHECK(g.gradient(0, g.units()[0].tensors()[1])[0] != 0.0);
  CHECK(x.gradient() != nullptr);
}

}  // namespace
