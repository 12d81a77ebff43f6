// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/attention.hpp>
#include <superoffload/nn/rms_norm.hpp>
#include <superoffload/nn/rotary.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <algorithm>
#include <vector>

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace nn = superoffload::nn;

/// The documents of a batch on the CPU, whose device memory is host memory.
struct documents {
  explicit documents(std::vector<std::int32_t> lengths) {
    starts.push_back(0);
    for (auto const length : lengths) {
      for (std::int32_t i = 0; i < length; ++i) { positions.push_back(i); }
      starts.push_back(starts.back() + length);
      batch.longest = std::max(batch.longest, length);
    }
    batch.rows = starts.back();
    batch.documents = static_cast<std::int64_t>(lengths.size());
    batch.starts = starts.data();
    batch.positions = positions.data();
  }
  std::vector<std::int32_t> starts, positions;
  nn::batch batch;
};

TEST_CASE("rotary and attention have the gradient of their formula") {
  constexpr nn::attention_heads heads{4, 2, 6};
  constexpr int columns = (4 + 2 * 2) * 6;
  std::vector<double> const frequencies{1.0, 0.3, 0.05};
  unit_layout unit{0, "unit"};
  nn::rms_norm const norm{unit.add_vector("w", columns), 1e-5};  // a copy, for functions that work in place
  graph g{{unit}};
  nn::rotary_table<superoffload::cpu::device, double> const table{g.device, g.stream, frequencies, 16};
  SUBCASE("one document") {
    documents const d{{7}};
    check_function(g, g.random(7 * columns), columns, [&](graph::variable x) {
      return nn::attention(nn::rotary(norm(x), d.batch, table, heads), d.batch, heads);
    });
  }
  SUBCASE("two thirds of each head are turned") {
    documents const d{{7}};
    nn::rotary_table<superoffload::cpu::device, double> const part{g.device, g.stream, {1.0, 0.3}, 16};
    CHECK(part.turned() == 4);
    check_function(g, g.random(7 * columns), columns, [&](graph::variable x) {
      return nn::attention(nn::rotary(norm(x), d.batch, part, heads), d.batch, heads);
    });
  }
  SUBCASE("several documents do not see each other") {
    documents const d{{3, 1, 4}};
    check_function(g, g.random(8 * columns), columns, [&](graph::variable x) {
      return nn::attention(nn::rotary(norm(x), d.batch, table, heads), d.batch, heads);
    });
  }
  SUBCASE("dropout of weights") {
    documents const d{{3, 5}};
    auto const dropout = superoffload::kernel::dropout_mask::with(0.3, 5);
    check_function(g, g.random(8 * columns), columns,
                   [&](graph::variable x) { return nn::attention(norm(x), d.batch, heads, {}, dropout); });
  }
  SUBCASE("a sliding window") {
    documents const d{{8}};
    nn::attention_heads windowed = heads;
    windowed.window = 3;
    check_function(g, g.random(8 * columns), columns,
                   [&](graph::variable x) { return nn::attention(norm(x), d.batch, windowed); });
  }
}

TEST_CASE("sinks have the gradient of their formula") {
  constexpr nn::attention_heads heads{4, 2, 6};
  constexpr int columns = (4 + 2 * 2) * 6;
  unit_layout unit{0, "unit"};
  auto const sinks = unit.add_vector("sinks", 4);
  graph g{{unit}};
  SUBCASE("several documents") {
    documents const d{{3, 1, 0, 4}};
    check_function(g, g.random(8 * columns), columns,
                   [&](graph::variable x) { return nn::attention(x, d.batch, heads, sinks); });
  }
  SUBCASE("more rows than one block has, in a window") {
    documents const d{{70, 3}};
    nn::attention_heads windowed = heads;
    windowed.window = 5;
    check_function(g, g.random(73 * columns), columns,
                   [&](graph::variable x) { return nn::attention(x, d.batch, windowed, sinks); });
  }
}

}  // namespace
