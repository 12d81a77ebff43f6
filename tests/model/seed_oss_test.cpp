// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/seed_oss.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

namespace {

using namespace superoffload;

model::config small(double dropout) {
  auto config = test::small_config("seed_oss");
  config.qkv_bias = true;
  config.output_bias = dropout > 0.0;
  config.attention_dropout = dropout;
  config.residual_dropout = dropout;
  return config;
}

TEST_CASE(
    "every parameter of a Seed-OSS has the gradient that finite differences give, with dropout and without") {
  test::check_gradients<model::seed_oss>(small(0.0));
  test::check_gradients<model::seed_oss>(small(0.3));
}

TEST_CASE("Seed-OSS's blocks can be recomputed, and drop the same elements") {
  CHECK(test::check_recompute<model::seed_oss>(small(0.0)).size() == 14);
  CHECK(test::check_recompute<model::seed_oss>(small(0.3)).size() == 14);  // dropout works in place
}

TEST_CASE("dropout is for training, and every batch has its own") {
  test::small_model<model::seed_oss> with{small(0.3)}, without{small(0.0)};
  auto const copy_weights = [&] {
    for (auto const& unit : without.model.units()) {
      for (std::size_t i = 0; i < unit.tensors().size(); ++i) {
        auto const& of = with.model.units()[static_cast<std::size_t>(unit.id())].tensors();
        for (auto const& tensor : of) {
          if (tensor.name == unit.tensors()[i].name) {
            std::ranges::copy(with.g.weights(unit.id(), tensor),
                              without.g.weights(unit.id(), unit.tensors()[i]).begin());
          }
        }
      }
    }
  };
  for (auto const& unit : with.model.units()) {
    for (auto const& tensor : unit.tensors()) {
      if (tensor.name.ends_with("o_proj.bias")) {
        std::ranges::fill(with.g.weights(unit.id(), tensor), 0.0);
      }
    }
  }
  copy_weights();
  CHECK(with.loss(false) == doctest::Approx(without.loss(false)));
  auto const first = with.loss(true);
  CHECK(first != doctest::Approx(without.loss(true)));
  CHECK(with.loss(true) == first);
  with.s.batch.noise = 2;
  CHECK(with.loss(true) != doctest::Approx(first));
}

TEST_CASE("Seed-OSS keeps an architecture's contract, with biases after their matrices") {
  conformance::architecture_keeps_its_contract<model::seed_oss>(small(0.0));
  conformance::architecture_keeps_its_contract<model::seed_oss>(small(0.3));
  model::seed_oss const seed{small(0.0)};
  auto const& layer = seed.units()[1];
  REQUIRE(layer.tensors().size() == 12);
  CHECK(layer.tensors()[4].name == "model.layers.0.self_attn.q_proj.bias");
  CHECK(layer.tensors()[5].offset == layer.tensors()[4].offset + 16);
  CHECK(layer.tensors()[5].shape == std::vector<std::int64_t>{8});
}

}  // namespace
