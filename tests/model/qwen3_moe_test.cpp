// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/qwen3_moe.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using namespace superoffload;

model::config small(bool normalised) {
  auto c = test::small_config("qwen3_moe");
  c.intermediate = 6;
  c.experts = 5;
  c.experts_per_token = 2;
  c.normalizes_experts = normalised;
  return c;
}

/// Its first layer has an MLP.
model::config partly_dense() {
  auto c = small(true);
  c.dense_layers = {true, false};
  c.dense_intermediate = 7;
  return c;
}

/// So large that the loss of tokens does not hide it.
model::config balanced(model::config c) {
  c.load_balancing_weight = 3.0;
  return c;
}

TEST_CASE("every parameter of a Qwen3 with experts has the gradient that finite differences give") {
  test::check_gradients<model::qwen3_moe>(small(true));
  test::check_gradients<model::qwen3_moe>(small(false));
  test::check_gradients<model::qwen3_moe>(partly_dense());
  test::check_gradients<model::qwen3_moe>(balanced(small(false)));
  test::check_gradients<model::qwen3_moe>(balanced(partly_dense()));
}

TEST_CASE(
    "in Qwen3 with experts, the choice of kept activations changes no gradient, and the peak is as planned") {
  auto const activations = test::check_recompute<model::qwen3_moe>(small(true));
  // Two blocks of norm, qkv, norm of heads, attention, o, norm, experts.
  REQUIRE(activations.size() == 14);
  CHECK(activations[6].result);
  CHECK(test::check_recompute<model::qwen3_moe>(partly_dense()).size() == 15);  // an MLP has two functions
  CHECK(test::check_recompute<model::qwen3_moe>(balanced(partly_dense())).size() == 15);
}

TEST_CASE("Qwen3 with experts keeps an architecture's contract") {
  conformance::architecture_keeps_its_contract<model::qwen3_moe>(small(true));
  conformance::architecture_keeps_its_contract<model::qwen3_moe>(partly_dense());
}

TEST_CASE(
    "all experts of a layer are one parameter, read from their own tensors, and FLOPs count active ones") {
  model::qwen3_moe const model{small(true)};
  auto const& tensors = model.units()[1].tensors();
  auto const at = [&](std::string const& name) {
    return std::ranges::find(tensors, "model.layers.0.mlp." + name, &autograd::tensor_entry::name);
  };
  auto const gate = at("experts.0.gate_proj.weight");
  REQUIRE(gate != tensors.end());
  CHECK(gate->shape == std::vector<std::int64_t>{6, 8});
  CHECK((gate + 1)->name == "model.layers.0.mlp.experts.0.up_proj.weight");
  CHECK((gate + 2)->name == "model.layers.0.mlp.experts.1.gate_proj.weight");
  CHECK((gate + 9)->offset == gate->offset + 9 * 6 * 8);
  auto const down = at("experts.4.down_proj.weight");
  REQUIRE(down != tensors.end());
  CHECK(down->shape == std::vector<std::int64_t>{8, 6});
  CHECK(down->offset == at("experts.0.down_proj.weight")->offset + 4 * 8 * 6);
  CHECK(at("gate.weight")->shape == std::vector<std::int64_t>{5, 8});
  // Per layer: q, o 8x16 each, k, v 8x8 each, router 8x5, two experts of 3 x 8x6; head 11x8.
  double const matrices = 2.0 * (2 * 8 * 16 + 2 * 8 * 8 + 8 * 5 + 2 * 3 * 8 * 6) + 11 * 8;
  CHECK(model.forward_flops(5, [](std::int32_t) { return 15; }) == 2.0 * matrices * 5 + 4.0 * 2 * 16 * 15);
}

TEST_CASE("a dense layer of Qwen3 with experts has the tensors and FLOPs of an MLP") {
  model::qwen3_moe const model{partly_dense()};
  auto const shape = [&](std::size_t unit, std::string const& name) {
    auto const& tensors = model.units()[unit].tensors();
    auto const at = std::ranges::find(tensors, name, &autograd::tensor_entry::name);
    return at == tensors.end() ? std::vector<std::int64_t>{} : at->shape;
  };
  CHECK(shape(1, "model.layers.0.mlp.gate_proj.weight") == std::vector<std::int64_t>{7, 8});
  CHECK(shape(1, "model.layers.0.mlp.up_proj.weight") == std::vector<std::int64_t>{7, 8});
  CHECK(shape(1, "model.layers.0.mlp.down_proj.weight") == std::vector<std::int64_t>{8, 7});
  CHECK(shape(1, "model.layers.0.mlp.gate.weight").empty());
  CHECK(shape(2, "model.layers.1.mlp.gate.weight") == std::vector<std::int64_t>{5, 8});
  CHECK(shape(2, "model.layers.1.mlp.gate_proj.weight").empty());
  // Per layer: q, o 8x16 each, k, v 8x8 each; an MLP of 3 x 8x7; router 8x5, two experts of 3 x 8x6; head
  // 11x8.
  double const matrices = 2.0 * (2 * 8 * 16 + 2 * 8 * 8) + 3 * 8 * 7 + 8 * 5 + 2 * 3 * 8 * 6 + 11 * 8;
  CHECK(model.forward_flops(5, [](std::int32_t) { return 15; }) == 2.0 * matrices * 5 + 4.0 * 2 * 16 * 15);
}

/// The load-balancing loss with its weight: what a forward has in training beyond one in an evaluation.
double load_balancing_loss(test::small_model<model::qwen3_moe>& m) { return m.loss(true) - m.loss(false); }

TEST_CASE(
    "the load-balancing loss is over the tokens of all layers with experts, and divided by no label tokens") {
  // Without a router's weights, every probability is 1 / 5, and each token chooses the experts 0 and 1.
  auto const uniform = [](model::config const& c) {
    test::small_model<model::qwen3_moe> m{c};
    for (auto const& unit : m.model.units()) {
      for (auto const& tensor : unit.tensors()) {
        if (tensor.name.ends_with("mlp.gate.weight")) {
          std::ranges::fill(m.g.weights(unit.id(), tensor), 0.0);
        }
      }
    }
    return load_balancing_loss(m);
  };
  CHECK(uniform(small(true)) == 0.0);
  CHECK(uniform(balanced(small(true))) == doctest::Approx(3.0 * 2));
  CHECK(uniform(balanced(partly_dense())) == doctest::Approx(3.0 * 2));

  test::small_model<model::qwen3_moe> m{balanced(small(true))};
  auto const whole = load_balancing_loss(m);
  CHECK(whole > 3.0);
  m.s.batch.divisor = 60;  // `m` divides the sum by 6
  CHECK(load_balancing_loss(m) == doctest::Approx(10 * whole));
}

TEST_CASE("padding takes no part in the load-balancing loss") {
  test::small_model<model::qwen3_moe> m{balanced(small(true))};
  auto const whole = load_balancing_loss(m);
  std::vector<std::int32_t> padding(8, 1);
  m.s.batch.padding = padding.data();
  CHECK(load_balancing_loss(m) == 0.0);
  m.gradients();
  auto const only_tokens = m.all_gradients();
  test::small_model<model::qwen3_moe> without{small(true)};
  without.gradients();
  CHECK(only_tokens == without.all_gradients());
  std::ranges::fill(padding, 0);
  CHECK(load_balancing_loss(m) == whole);

  // The second document is padding: what is left is the loss of the first document alone.
  std::fill(padding.begin() + 4, padding.end(), 1);
  auto const first = load_balancing_loss(m);
  CHECK(first != whole);
  m.s.batch.padding = nullptr;
  m.s.batch.rows = 4;
  m.s.batch.documents = 1;
  m.s.tokens.resize(4);
  test::order_tokens(m.s);
  CHECK(load_balancing_loss(m) == doctest::Approx(first));
}

TEST_CASE("an architecture without experts refuses a load-balancing loss") {
  auto c = balanced(test::small_config("llama"));
  CHECK_THROWS_WITH_AS(model::llama{c}, doctest::Contains("'llama' has a load-balancing loss"), error);
}

}  // namespace
