// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/gated_mlp.hpp>
#include <superoffload/nn/rms_norm.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace autograd = superoffload::autograd;
namespace nn = superoffload::nn;

constexpr std::int64_t hidden = 6, intermediate = 5;

nn::gated_mlp lay_out(unit_layout& unit, std::int64_t tile_rows) {
  nn::linear const gate_up{unit.add_matrix({{"gate", intermediate}, {"up", intermediate}}, hidden),
                           unit.add_vector("gate_up_bias", 2 * intermediate)};
  nn::linear const down{unit.add_matrix({{"down", hidden}}, intermediate), unit.add_vector("bias", hidden)};
  return {gate_up, down, tile_rows};
}

TEST_CASE("a gated MLP has the gradients of its formula, in tiles, too") {
  for (std::int64_t const tile_rows : {0, 1, 2, 5, 8}) {
    CAPTURE(tile_rows);
    unit_layout unit{0, "unit"};
    nn::rms_norm const norm{unit.add_vector("w", hidden), 1e-5};
    auto const mlp = lay_out(unit, tile_rows);
    graph g{{unit}};
    check_function(g, g.random(5 * hidden), hidden, [&](graph::variable x) { return mlp(norm(x)); });
    check_function(g, g.random(5 * hidden), hidden, [&](graph::variable x) { return mlp.onto(x, norm(x)); });
    // The input has another reader, whose gradient is there first.
    check_function(g, g.random(5 * hidden), hidden, [&](graph::variable x) {
      auto const normed = norm(x);
      return mlp.onto(mlp(normed), normed);
    });
  }
}

/// The result, the gradient of the input and those of the parameters.
struct pass {
  std::vector<double> y, of_x;
  std::vector<std::vector<double>> of_parameters;
  std::size_t peak = 0;
};
pass run(std::int64_t rows, std::int64_t tile_rows) {
  unit_layout unit{0, "unit"};
  auto const mlp = lay_out(unit, tile_rows);
  graph g{{unit}};
  auto const functional = g.random(rows * hidden);
  auto const x = g.input(g.random(rows * hidden), hidden);
  auto const y = g.on.scope({0}, autograd::pass::forward, [&] { return mlp(x); });
  g.stream.synchronize();
  pass all{.y = {y.value(), y.value() + y.count()}, .of_x = {}, .of_parameters = {}};
  y.adopt_gradient(g.on.allocate<double>(y.count()));
  g.stream.copy(y.gradient(), functional.data(), functional.size() * sizeof(double));
  g.on.backward();
  g.stream.synchronize();
  all.of_x.assign(x.gradient(), x.gradient() + x.count());
  for (auto const& tensor : g.units()[0].tensors()) {
    auto const gradient = g.gradient(0, tensor);
    all.of_parameters.emplace_back(gradient.begin(), gradient.end());
  }
  all.peak = g.on.peak_bytes();
  return all;
}

void check_near(std::vector<double> const& values, std::vector<double> const& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-12).scale(1.0));
  }
}

TEST_CASE("tiles change results by no more than the order of sums") {
  auto const whole = run(37, 0), tiled = run(37, 8);
  check_near(tiled.y, whole.y);
  check_near(tiled.of_x, whole.of_x);
  REQUIRE(tiled.of_parameters.size() == whole.of_parameters.size());
  for (std::size_t i = 0; i < whole.of_parameters.size(); ++i) {
    check_near(tiled.of_parameters[i], whole.of_parameters[i]);
  }
}

TEST_CASE("without rows the gradients of weights are zero") {
  for (auto const& of_parameter : run(0, 8).of_parameters) {
    CHECK(of_parameter == std::vector<double>(of_parameter.size()));
  }
}

TEST_CASE("only one tile of gates and ups is in memory") {
  constexpr std::int64_t rows = 4096;
  constexpr std::size_t row = sizeof(double);
  auto const whole = run(rows, 0), tiled = run(rows, 64);
  constexpr std::size_t between = rows * 2 * intermediate * row;
  // x, y and their gradients stay.
  CHECK(tiled.peak < 4 * rows * hidden * row + between / 16);
  CHECK(whole.peak >= 4 * rows * hidden * row + between);
}

}  // namespace
