// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/qwen3_moe.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

#include <algorithm>

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

TEST_CASE("every parameter of a Qwen3 with experts has the gradient that finite differences give") {
  test::check_gradients<model::qwen3_moe>(small(true));
  test::check_gradients<model::qwen3_moe>(small(false));
  test::check_gradients<model::qwen3_moe>(partly_dense());
}

TEST_CASE(
    "in Qwen3 with experts, the choice of kept activations changes no gradient, and the peak is as planned") {
  auto const activations = test::check_recompute<model::qwen3_moe>(small(true));
  // Two blocks of norm, qkv, norm of heads, attention, o, norm, experts.
  REQUIRE(activations.size() == 14);
  CHECK(activations[6].result);
  CHECK(test::check_recompute<model::qwen3_moe>(partly_dense()).size() == 15);  // an MLP has two functions
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

}  // namespace
