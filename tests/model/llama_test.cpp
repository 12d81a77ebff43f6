// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "support/graph.hpp"

#include <numeric>
#include <random>

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

  double loss(bool with_backward) {
    g.on.reset(with_backward);
    auto const sum = model.loss<cpu::device, double>(g.on, s.batch, &table);
    g.stream.synchronize();
    return *sum.total / 6.0;
  }
  void gradients(autograd::retention const& kept = {}) {
    g.on.retain(&kept);
    g.on.forget_gradients();
    loss(true);
    g.on.backward();
    g.stream.synchronize();
  }
  std::vector<double> all_gradients() {
    std::vector<double> all;
    for (auto const& unit : model.units()) {
      auto const* const gradient = static_cast<double const*>(g.store.gradient(unit.id()).data);
      all.insert(all.end(), gradient, gradient + unit.elements());
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
  r.gradients();
  for (auto const& unit : r.model.units()) {
    for (auto const& tensor : unit.tensors()) {
      CAPTURE(tensor.name);
      auto const gradient = r.g.gradient(unit.id(), tensor);
      std::vector<double> const kept{gradient.begin(), gradient.end()};
      check_derivatives(r.g.weights(unit.id(), tensor), kept, [&] { return r.loss(false); });
    }
  }
}

std::size_t dry_peak(run& r, autograd::retention const& kept,
                     std::vector<autograd::activation>* activations = nullptr) {
  autograd::tape<cpu::device, double> dry{r.g.device, static_cast<int>(r.model.units().size())};
  model::llama::tables<cpu::device, double> const none;
  dry.retain(&kept);
  dry.list_activations(activations);
  dry.reset();
  r.model.loss<cpu::device, double>(dry, r.s.batch, &none);
  dry.backward();
  return dry.peak_bytes();
}

TEST_CASE("whatever of the blocks is kept, no bit of any gradient changes and the peak is as planned") {
  for (bool const tied : {false, true}) {
    run r{tied};
    std::vector<autograd::activation> activations;
    autograd::retention const everything;
    auto const whole = dry_peak(r, everything, &activations);
    r.gradients();
    CHECK(r.g.on.peak_bytes() == whole);
    auto const expected = r.all_gradients();
    // Two blocks of norm, qkv, attention, o, norm, gate and up, swiglu, down; rotary works in place.
    REQUIRE(activations.size() == 16);
    CHECK(activations[7].result);
    CHECK(activations[1].again.flops == 2.0 * 8 * 8 * 32);
    std::mt19937 generator{5};
    for (int i = 0; i < 60; ++i) {
      autograd::retention kept;
      for (auto const& a : activations) {
        if (i == 0 || generator() % 2 == 0) {
          kept.drop(a);
        }
      }
      run again{tied};
      again.gradients(kept);
      CHECK(again.all_gradients() == expected);
      CHECK(again.g.on.peak_bytes() == dry_peak(r, kept));
      CHECK((i > 0 || again.g.on.peak_bytes() < whole));
    }
  }
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
