// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/qwen2.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

#include <string>
#include <vector>

namespace {

using namespace superoffload;

/// Documents have four tokens, the last without a target; on the second layer a token sees two.
model::config small(bool tied = false) {
  auto c = test::small_config("qwen2", tied);
  c.qkv_bias = true;
  c.windows = {0, 2};
  return c;
}

TEST_CASE("every parameter of a Qwen2 has the gradient that finite differences give") {
  test::check_gradients<model::qwen2>(small());
  test::check_gradients<model::qwen2>(small(true));
}

TEST_CASE("Qwen2's blocks can be recomputed") {
  CHECK(test::check_recompute<model::qwen2>(small()).size() == 14);
}

TEST_CASE("Qwen2 keeps an architecture's contract") {
  conformance::architecture_keeps_its_contract<model::qwen2>(small());
}

TEST_CASE("Qwen2 has biases of queries, keys and values and no others") {
  model::qwen2 const made{small()};
  std::vector<std::string> biases;
  for (auto const& tensor : made.units()[1].tensors()) {
    if (tensor.name.ends_with(".bias")) {
      biases.push_back(tensor.name);
    }
  }
  CHECK(biases == std::vector<std::string>{"model.layers.0.self_attn.q_proj.bias",
                                           "model.layers.0.self_attn.k_proj.bias",
                                           "model.layers.0.self_attn.v_proj.bias"});
}

}  // namespace
