// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/dropout.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <algorithm>
#include <set>

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace nn = superoffload::nn;
namespace kernel = superoffload::kernel;

TEST_CASE("a layer with dropout onto a residual has the gradient of its formula") {
  unit_layout unit{0, "unit"};
  nn::linear const layer{unit.add_matrix({{"w", 5}}, 5), unit.add_vector("b", 5)};
  graph g{{unit}};
  nn::batch batch;
  batch.noise = 3;
  auto const mask = kernel::dropout_mask::with(0.4, 9);
  check_function(g, g.random(6 * 5), 5, [&](graph::variable x) {
    return x.on().run(nn::dropout_function<superoffload::cpu::device, double>{layer(x), x, mask});
  });
}

TEST_CASE("masks differ by batch and site, and nothing is dropped where no backward follows") {
  graph g{{unit_layout{0, "unit"}}};
  nn::batch first, second;
  second.noise = 1;
  g.on.reset(true);
  std::set<std::uint64_t> keys;
  for (auto const* b : {&first, &second}) {
    for (std::uint64_t const site : {0U, 1U, 2U}) {
      auto const mask = nn::dropout{0.25, site}.mask(g.on, *b);
      CHECK(mask.dropped == 16384);
      keys.insert(mask.key);
    }
  }
  CHECK(keys.size() == 6);
  CHECK(nn::dropout{0.0, 0}.mask(g.on, first).dropped == 0);
  g.on.reset(false);
  CHECK(nn::dropout{0.25, 0}.mask(g.on, first).dropped == 0);
}

TEST_CASE("rows and neighbours of a mask are independent") {
  auto const mask = kernel::dropout_mask::with(0.5, 12345);
  constexpr int count = 4096;
  int both_rows = 0, both_neighbours = 0;
  for (int i = 0; i < count; ++i) {
    bool const here = mask.of<float>(0, i) > 0.0F;
    both_rows += here && mask.of<float>(1, i) > 0.0F;
    both_neighbours += here && mask.of<float>(0, i + 1) > 0.0F;
  }
  // A quarter, within five standard deviations.
  CHECK(std::abs(both_rows - count / 4) < 140);
  CHECK(std::abs(both_neighbours - count / 4) < 140);
}

}  // namespace
