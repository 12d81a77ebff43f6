// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/add.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace nn = superoffload::nn;

TEST_CASE("a sum passes its gradient to both sides") {
  graph g{{unit_layout{0, "unit"}}};
  check_function(g, g.random(3 * 4), 4, [](graph::variable x) { return x + x; });
}

}  // namespace
