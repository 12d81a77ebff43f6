// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/phi3.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

#include <cstdint>
#include <utility>
#include <vector>

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

model::config with_longrope(std::int64_t original, std::vector<double> short_factors,
                            std::vector<double> long_factors) {
  auto c = small();
  c.scaling = {.kind = model::rope_scaling::rule::longrope,
               .original_positions = original,
               .attention_factor = 1.2,
               .short_factors = std::move(short_factors),
               .long_factors = std::move(long_factors)};
  return c;
}

TEST_CASE("the longest document of a micro-batch chooses the factors of longrope for all of its documents") {
  std::vector<double> const fast{1.0, 2.0}, slow{3.0, 8.0};
  auto const loss = [](model::config const& c, std::int32_t longest) {
    test::small_model<model::phi3> m{c};
    m.s.batch.longest = longest;
    return m.loss(false);
  };
  auto const of_short = loss(with_longrope(64, fast, fast), 4),
             of_long = loss(with_longrope(64, slow, slow), 4);
  CHECK(of_short != of_long);
  CHECK(loss(with_longrope(4, fast, slow), 4) == of_short);
  CHECK(loss(with_longrope(3, fast, slow), 4) == of_long);
  CHECK(loss(with_longrope(8, fast, slow), 8) == of_short);  // tables have 8 positions
  CHECK(loss(with_longrope(7, fast, slow), 8) == of_long);
  test::check_gradients<model::phi3>(with_longrope(3, fast, slow));
}

TEST_CASE("longrope has a second table only for documents that need it") {
  auto const bytes = [](std::int64_t original, std::int64_t positions) {
    return model::phi3{with_longrope(original, {1.0, 2.0}, {3.0, 4.0})}.table_bytes<double>(positions);
  };
  auto const of_position = 2 * 2 * sizeof(double);  // the cosine and the sine of two frequencies
  CHECK(bytes(8, 8) == 8 * of_position);
  CHECK(bytes(7, 8) == (7 + 8) * of_position);
  CHECK(model::phi3{small()}.table_bytes<double>(8) == 8 * of_position);
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
