// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/embedding.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <cstdint>
#include <vector>

namespace {

using superoffload::autograd::pass;
using superoffload::autograd::unit_layout;
using superoffload::test::graph;
namespace nn = superoffload::nn;

/// Token 2 three times, 0 and 4 once, 1 and 3 never.
struct sample {
  std::vector<std::int32_t> tokens{2, 0, 2, 4, 2}, order{1, 0, 2, 4, 3}, segment_starts{0, 1, 4, 5},
      segment_ids{0, 2, 4};
  nn::batch batch;

  sample() {
    batch = {.rows = 5, .segments = 3};
    batch.tokens = tokens.data();
    batch.order = order.data();
    batch.segment_starts = segment_starts.data();
    batch.segment_ids = segment_ids.data();
  }
};

TEST_CASE("a row of the table gets the sum of its tokens' gradients, also added to those of another use") {
  unit_layout unit{0, "unit"};
  nn::embedding const embedding{unit.add_matrix({{"table", 5}}, 3)};
  graph g{{unit}};
  sample const s;
  auto const& table = g.units()[0].tensors()[0];
  std::vector<double> const functional = g.random(15);
  auto const value = [&] {
    double sum = 0.0;
    for (std::size_t i = 0; i < 15; ++i) {
      sum += functional[i] * g.weights(0, table)[static_cast<std::size_t>(s.tokens[i / 3]) * 3 + i % 3];
    }
    return sum;
  };
  for (int const uses : {1, 2}) {
    g.on.reset();
    g.on.forget_gradients();
    for (int use = 0; use < uses; ++use) {
      auto const y = g.on.scope({0}, pass::forward, [&] { return embedding(g.on, s.batch); });
      g.stream.synchronize();
      CHECK(y.value()[3 * 3 + 1] == g.weights(0, table)[4 * 3 + 1]);
      y.adopt_gradient(g.on.allocate<double>(15));
      g.stream.copy(y.gradient(), functional.data(), 15 * sizeof(double));
    }
    g.on.backward();
    g.stream.synchronize();
    std::vector<double> gradient{g.gradient(0, table).begin(), g.gradient(0, table).end()};
    for (auto& x : gradient) { x /= uses; }
    superoffload::test::check_derivatives(g.weights(0, table), gradient, value);
  }
}

TEST_CASE("a frozen table has no gradient") {
  unit_layout unit{0, "unit"};
  nn::embedding embedding{unit.add_matrix({{"table", 5}}, 3)};
  embedding.table.trainable = false;
  graph g{{unit}};
  sample const s;
  g.on.reset();
  auto const y = g.on.scope({0}, pass::forward, [&] { return embedding(g.on, s.batch); });
  y.adopt_gradient(y.value());
  g.on.backward();
  g.stream.synchronize();
  for (double const x : g.gradient(0, g.units()[0].tensors()[0])) { CHECK(x == 0.0); }
}

}  // namespace
