// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "support/graph.hpp"

#include <numeric>

namespace {

using namespace superoffload;
using test::check_derivatives;
using test::graph;

model::config small(bool tied) {
  model::config c{.model_type = "llama",
                  .vocabulary = 11,
                  .hidden = 8,
                  .intermediate = 10,
                  .layers = 2,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = 4,
                  .max_positions = 64};
  c.tied_head = tied;
  return c;
}

/// Two documents, one row without a target, one token three times.
struct sample {
  std::vector<std::int32_t> tokens{3, 1, 3, 7, 0, 10, 3, 2}, targets{1, 3, 7, -1, 10, 3, 2, -1},
      positions{0, 1, 2, 3, 0, 1, 2, 3}, starts{0, 4, 8}, order, segment_starts, segment_ids;
  nn::batch batch;

  sample() {
    order.resize(tokens.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return tokens[i] < tokens[j]; });
    for (std::int32_t i = 0; i < 8; ++i) {
      if (segment_ids.empty() || segment_ids.back() != tokens[order[i]]) {
        segment_ids.push_back(tokens[order[i]]);
        segment_starts.push_back(i);
      }
    }
    segment_starts.push_back(8);
    batch = {.rows = 8,
             .documents = 2,
             .segments = static_cast<std::int64_t>(segment_ids.size()),
             .longest = 4,
             .divisor = 6};
    batch.tokens = tokens.data();
    batch.targets = targets.data();
    batch.positions = positions.data();
    batch.starts = starts.data();
    batch.order = order.data();
    batch.segment_starts = segment_starts.data();
    batch.segment_ids = segment_ids.data();
  }
};

struct run {
  explicit run(bool tied)
      : model{small(tied)},
        g{model.units()},
        table{model.make_tables<cpu::device, double>(g.device, g.stream, 8)} {}

  double loss(bool with_backward, bool recompute) {
    g.on.reset(with_backward);
    auto const sum = model.loss<cpu::device, double>(g.on, s.batch, &table, recompute);
    g.stream.synchronize();
    return *sum.total / 6.0;
  }
  void gradients(bool recompute) {
    for (auto const& unit : model.units()) { g.on.forget_gradients(unit.id()); }
    loss(true, recompute);
    g.on.backward();
    g.stream.synchronize();
  }
  std::vector<double> all_gradients() {
    std::vector<double> all;
    for (auto const& unit : model.units()) {
      all.insert(all.end(), g.store.gradient(unit.id()), g.store.gradient(unit.id()) + unit.elements());
    }
    return all;
  }

  sample s;
  model::llama model;
  graph g;
  model::llama::tables<cpu::device, double> table;
};

TEST_CASE("every parameter of a Llama has the gradient that finite differences give") {
  bool tied = false;
  SUBCASE("with a head of its own") { tied = false; }
  SUBCASE("with the embedding as head") { tied = true; }
  run r{tied};
  r.gradients(false);
  for (auto const& unit : r.model.units()) {
    for (auto const& tensor : unit.tensors()) {
      CAPTURE(tensor.name);
      auto const gradient = r.g.gradient(unit.id(), tensor);
      std::vector<double> const kept{gradient.begin(), gradient.end()};
      check_derivatives(r.g.weights(unit.id(), tensor), kept, [&] { return r.loss(false, false); });
    }
  }
}

TEST_CASE("recomputing the blocks changes no bit of any gradient") {
  for (bool const tied : {false, true}) {
    run r{tied};
    r.gradients(false);
    auto const kept = r.all_gradients();
    r.gradients(true);
    CHECK(kept == r.all_gradients());
  }
}

TEST_CASE("a dry tape tells the peak that a real one reaches, and recompute lowers it") {
  run r{false};
  auto const peak = [&](bool recompute) {
    autograd::tape<cpu::device, double> dry{static_cast<int>(r.model.units().size())};
    model::llama::tables<cpu::device, double> const none;
    dry.reset();
    r.model.loss<cpu::device, double>(dry, r.s.batch, &none, recompute);
    dry.backward();
    return dry.peak_bytes();
  };
  r.gradients(true);
  CHECK(r.g.on.peak_bytes() == peak(true));
  r.gradients(false);
  CHECK(r.g.on.peak_bytes() == peak(false));
  CHECK(peak(true) < peak(false));
}

TEST_CASE("tensors of a layer lie side by side under their names in the checkpoint") {
  model::llama const llama{small(false)};
  REQUIRE(llama.units().size() == 4);
  auto const& layer = llama.units()[1];
  CHECK(layer.tensors()[1].name == "model.layers.0.self_attn.q_proj.weight");
  CHECK(layer.tensors()[1].shape == std::vector<std::int64_t>{16, 8});
  CHECK(layer.tensors()[2].offset == layer.tensors()[1].offset + 16 * 8);
  CHECK(layer.tensors()[1].offset % autograd::unit_layout::alignment == 0);
  CHECK(llama.units()[3].tensors().back().name == "lm_head.weight");
  CHECK(model::llama{small(true)}.units()[3].tensors().size() == 1);
}

TEST_CASE("Llama keeps an architecture's contract") {
  conformance::architecture_keeps_its_contract<model::llama>(small(false));
  conformance::architecture_keeps_its_contract<model::llama>(small(true));
}

TEST_CASE("FLOPs count matrix products and causal attention") {
  model::llama const llama{small(false)};
  // Per layer: q, o 8x16 each, k, v 8x8 each, gate, up, down 8x10 each; head 11x8.
  double const matrices = 2.0 * (2 * 8 * 16 + 2 * 8 * 8 + 3 * 8 * 10) + 11 * 8;
  CHECK(llama.forward_flops(5, 15) == 2.0 * matrices * 5 + 4.0 * 2 * 16 * 15);
}

}  // namespace
