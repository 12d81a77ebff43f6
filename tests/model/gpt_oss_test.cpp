// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/gpt_oss.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

#include <algorithm>

namespace {

using namespace superoffload;

/// A window on the first layer only, yarn, more experts than a token chooses.
model::config small() {
  auto c = test::small_config("gpt_oss");
  c.intermediate = 6;
  c.qkv_bias = c.output_bias = true;
  c.windows = {2, 0};
  c.experts = 5;
  c.experts_per_token = 2;
  c.normalizes_experts = true;
  c.swiglu_limit = 0.4;  // a few values exceed it
  c.padding_token = 10;
  c.scaling.kind = model::rope_scaling::rule::yarn;
  c.scaling.factor = 8;
  c.scaling.original_positions = 16;
  c.scaling.attention_factor = 1.2;
  return c;
}

TEST_CASE("every parameter of a gpt-oss has the gradient that finite differences give") {
  auto c = small();
  c.padding_token = -1;
  test::check_gradients<model::gpt_oss>(c);
  c.load_balancing_weight = 3.0;
  test::check_gradients<model::gpt_oss>(c);
}

TEST_CASE("in gpt-oss, the choice of kept activations changes no gradient, and the peak is as planned") {
  auto const activations = test::check_recompute<model::gpt_oss>(small());
  // Two blocks of norm, qkv, attention, o, norm, experts; rotary works in place.
  REQUIRE(activations.size() == 12);
  CHECK(activations[5].result);
  auto const& experts = activations[5].recompute;
  CHECK(experts.flops == 2.0 * 8 * 8 * 5);
  CHECK(experts.grouped == 6.0 * 8 * 2 * 8 * 6);
  CHECK(experts.all_flops() == experts.flops + experts.grouped);
}

TEST_CASE("a gpt-oss whose window is longer than its documents behaves as without a window") {
  auto c = small();
  c.windows = {64, 64};
  auto without = c;
  without.windows = {};
  test::small_model<model::gpt_oss> wide{c}, none{without};
  wide.gradients();
  none.gradients();
  CHECK(wide.loss(false) == none.loss(false));
  CHECK(wide.all_gradients() == none.all_gradients());
}

TEST_CASE("gpt-oss keeps an architecture's contract") {
  conformance::architecture_keeps_its_contract<model::gpt_oss>(small());
}

TEST_CASE("a layer of gpt-oss is one unit with the names of the checkpoint, and FLOPs count active experts") {
  model::gpt_oss const gpt_oss{small()};
  REQUIRE(gpt_oss.units().size() == 4);
  auto const& layer = gpt_oss.units()[1];
  auto const named = [&](std::string const& name) {
    return *std::ranges::find(layer.tensors(), "model.layers.0." + name, &autograd::tensor_entry::name);
  };
  CHECK(named("self_attn.sinks").shape == std::vector<std::int64_t>{4});
  CHECK(named("mlp.router.bias").shape == std::vector<std::int64_t>{5});
  CHECK(named("mlp.experts.gate_up_proj").shape == std::vector<std::int64_t>{5, 8, 12});
  CHECK(named("mlp.experts.down_proj").shape == std::vector<std::int64_t>{5, 6, 8});
  CHECK(named("mlp.experts.gate_up_proj_bias").shape == std::vector<std::int64_t>{5, 12});
  // Per layer: q, o 8x16 each, k, v 8x8 each, router 8x5, two experts of 3 x 8x6; head 11x8.
  double const matrices = 2.0 * (2 * 8 * 16 + 2 * 8 * 8 + 8 * 5 + 2 * 3 * 8 * 6) + 11 * 8;
  auto const visible = [](std::int32_t window) { return window == 0 ? 15 : 9; };
  CHECK(gpt_oss.forward_flops(5, visible) == 2.0 * matrices * 5 + 4.0 * 16 * (15 + 9));
}

}  // namespace
