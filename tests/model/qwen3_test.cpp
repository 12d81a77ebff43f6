// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/qwen3.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

namespace {

using namespace superoffload;

model::config small(bool tied) { return test::small_config("qwen3", tied); }

TEST_CASE("every parameter of a Qwen3 has the gradient that finite differences give") {
  test::check_gradients<model::qwen3>(small(false));
  test::check_gradients<model::qwen3>(small(true));
}

TEST_CASE("Qwen3's blocks can be recomputed") {
  CHECK(test::check_recompute<model::qwen3>(small(false)).size() == 16);
}

TEST_CASE("Qwen3 keeps an architecture's contract, with norms of queries and keys side by side") {
  conformance::architecture_keeps_its_contract<model::qwen3>(small(false));
  conformance::architecture_keeps_its_contract<model::qwen3>(small(true));
  model::qwen3 const qwen{small(false)};
  auto const& layer = qwen.units()[1];
  REQUIRE(layer.tensors().size() == 11);
  CHECK(layer.tensors()[4].name == "model.layers.0.self_attn.q_norm.weight");
  CHECK(layer.tensors()[5].name == "model.layers.0.self_attn.k_norm.weight");
  CHECK(layer.tensors()[5].offset == layer.tensors()[4].offset + 4);
}

}  // namespace
