// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/rms_norm.hpp>
#include <superoffload/nn/swiglu.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace nn = superoffload::nn;

TEST_CASE("swiglu in place has the gradient of its formula") {
  unit_layout unit{0, "unit"};
  nn::rms_norm const norm{unit.add_vector("w", 10), 1e-5};
  graph g{{unit}};
  check_function(g, g.random(4 * 10), 10, [&](graph::variable x) { return nn::swiglu(norm(x)); });
}

}  // namespace
