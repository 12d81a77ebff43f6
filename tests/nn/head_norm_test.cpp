// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/head_norm.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <cstdint>
#include <vector>

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace nn = superoffload::nn;

TEST_CASE("norms of rotated heads have the gradient of their formula") {
  constexpr nn::attention_heads heads{3, 2, 6};
  constexpr int columns = (3 + 2 * 2) * 6;
  unit_layout unit{0, "unit"};
  nn::head_norm const norm{unit.add_vector({{"q", 6}, {"k", 6}}), 1e-5};
  graph g{{unit}};
  nn::rotary_table<superoffload::cpu::device, double> const table{g.device, g.stream, {1.0, 0.3, 0.05}, 16};
  std::vector<std::int32_t> const positions{0, 1, 2, 0, 7};
  nn::batch batch;
  batch.rows = 5;
  batch.positions = positions.data();
  check_function(g, g.random(5 * columns), columns,
                 [&](graph::variable x) { return norm.turned(x, batch, table, heads); });
}

}  // namespace
