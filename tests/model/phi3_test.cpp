// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/phi3.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

namespace {

using namespace superoffload;

model::config small() {
  auto config = test::small_config("phi3");
  config.padding_token = 9;  // not in the sample: finite differences ignore padding
  config.windows = {2, 2};
  return config;
}

TEST_CASE("every parameter of a Phi has the gradient that finite differences give") {
  test::check_gradients<model::phi3>(small());
  auto partial = small();
  partial.rotary_dim = 2;
  partial.scaling = {.kind = model::rope_scaling::rule::longrope,
                     .attention_factor = 1.2,
                     .short_factors = {1.5},
                     .long_factors = {2.5}};
  test::check_gradients<model::phi3>(partial);
}

TEST_CASE("Phi's blocks can be recomputed") {
  CHECK(test::check_recompute<model::phi3>(small()).size() == 14);
}

TEST_CASE("Phi keeps an architecture's contract, with one tensor for queries, keys and values") {
  conformance::architecture_keeps_its_contract<model::phi3>(small());
  model::phi3 const phi{small()};
  auto const& layer = phi.units()[1];
  REQUIRE(layer.tensors().size() == 6);
  CHECK(layer.tensors()[1].name == "model.layers.0.self_attn.qkv_proj.weight");
  CHECK(layer.tensors()[1].shape == std::vector<std::int64_t>{32, 8});
  CHECK(layer.tensors()[4].name == "model.layers.0.mlp.gate_up_proj.weight");
  CHECK(layer.tensors()[4].shape == std::vector<std::int64_t>{20, 8});
}

}  // namespace
