// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/add.hpp>
#include <superoffload/nn/rms_norm.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace nn = superoffload::nn;

TEST_CASE("rms_norm has the gradient of its formula, first writer or not") {
  unit_layout unit{0, "unit"};
  nn::rms_norm const norm{unit.add_vector("w", 7), 1e-5};
  graph g{{unit}};
  SUBCASE("alone") {
    check_function(g, g.random(5 * 7), 7, [&](graph::variable x) { return norm(x); });
  }
  SUBCASE("with another use of its input") {
    check_function(g, g.random(5 * 7), 7, [&](graph::variable x) { return norm(x) + x; });
  }
  SUBCASE("over more rows than a block of partial sums") {
    check_function(g, g.random(70 * 7), 7, [&](graph::variable x) { return norm(x); });
  }
}

}  // namespace
