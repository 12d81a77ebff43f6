// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/linear.hpp>
#include <superoffload/nn/rms_norm.hpp>
#include <superoffload/nn/swiglu.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace autograd = superoffload::autograd;
namespace nn = superoffload::nn;

TEST_CASE("a linear layer of swiglu has the gradients of its formula") {
  unit_layout unit{0, "unit"};
  nn::rms_norm const norm{unit.add_vector("w", 10), 1e-5};
  nn::linear const down{unit.add_matrix({{"down", 7}}, 5), unit.add_vector("bias", 7)};
  graph g{{unit}};
  check_function(g, g.random(4 * 10), 10, [&](graph::variable x) { return down(nn::swiglu(norm(x))); });
}

TEST_CASE("swiglu is in memory only while the next layer runs") {
  unit_layout unit{0, "unit"};
  nn::linear const down{unit.add_matrix({{"down", 4}}, 640)};
  graph g{{unit}};
  auto const gate_up = g.input(g.random(16 * 1280), 1280);
  auto const before = g.on.mark().mark;
  auto const y = g.on.scope({0}, autograd::pass::forward, [&] { return down(nn::swiglu(gate_up)); });
  constexpr std::size_t result = 16 * 4 * sizeof(double), between = 16 * 640 * sizeof(double);
  CHECK(g.on.mark().mark == before + result);
  CHECK(g.on.peak_bytes() == before + result + between);
  y.adopt_gradient(y.value());
  g.on.backward();
  g.stream.synchronize();
  CHECK(gate_up.gradient() == gate_up.value());
  CHECK(g.on.mark().mark == before + result);
  CHECK(g.on.peak_bytes() == before + result + between);
}

}  // namespace
