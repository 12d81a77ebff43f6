// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

namespace {

using namespace superoffload;

model::config small(bool tied) { return test::small_config("llama", tied); }

TEST_CASE("every parameter of a Llama has the gradient that finite differences give") {
  test::check_gradients<model::llama>(small(false));
  test::check_gradients<model::llama>(small(true));
}

TEST_CASE("the choice of kept activations changes no gradient, and the peak is as planned") {
  for (bool const tied : {false, true}) {
    auto const activations = test::check_recompute<model::llama>(small(tied));
    // Two blocks of norm, qkv, attention, o, norm, gate and up, down; rotary works in place, and swiglu
    // exists only during its GEMM.
    REQUIRE(activations.size() == 14);
    CHECK(activations[6].result);
    CHECK(activations[1].recompute.flops == 2.0 * 8 * 8 * 32);
  }
}

TEST_CASE("a layer's tensors are contiguous, with their names in the checkpoint") {
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

TEST_CASE("only a parameter that the head accumulates into, chunk by chunk, has a wide gradient") {
  for (bool const tied : {false, true}) {
    model::llama const llama{small(tied)};
    CHECK(llama.units().front().wide_gradient() == tied);
    CHECK_FALSE(llama.units()[1].wide_gradient());
    CHECK(llama.units().back().wide_gradient());
  }
}

TEST_CASE("Llama keeps an architecture's contract") {
  conformance::architecture_keeps_its_contract<model::llama>(small(false));
  conformance::architecture_keeps_its_contract<model::llama>(small(true));
}

TEST_CASE("FLOPs count GEMMs and causal attention, in a window if there is one") {
  auto config = small(false);
  // Per layer: q, o 8x16 each, k, v 8x8 each, gate, up, down 8x10 each; head 11x8.
  double const matrices = 2.0 * (2 * 8 * 16 + 2 * 8 * 8 + 3 * 8 * 10) + 11 * 8;
  auto const visible = [](std::int32_t window) { return window == 0 ? 15 : window; };
  CHECK(model::llama{config}.forward_flops(5, visible) == 2.0 * matrices * 5 + 4.0 * 2 * 16 * 15);
  config.windows = {0, 3};
  CHECK(model::llama{config}.forward_flops(5, visible) == 2.0 * matrices * 5 + 4.0 * 16 * (15 + 3));
}

TEST_CASE("the padding token's row of the embedding gets no gradient, the head's does") {
  auto config = small(false);
  config.padding_token = 3;
  test::small_model<model::llama> with{config}, without{small(false)};
  with.gradients();
  without.gradients();
  auto const& embedding = with.model.units()[0].tensors()[0];
  auto const& head = with.model.units()[3].tensors()[1];
  auto const at = [](std::span<double const> values, std::size_t row) { return values.subspan(row * 8, 8); };
  for (std::size_t row = 0; row < 11; ++row) {
    CHECK(std::ranges::equal(at(with.g.gradient(3, head), row), at(without.g.gradient(3, head), row)));
    auto const expected = row == 3 ? std::vector<double>(8) : [&] {
      auto const usual = at(without.g.gradient(0, embedding), row);
      return std::vector<double>{usual.begin(), usual.end()};
    }();
    CHECK(std::ranges::equal(at(with.g.gradient(0, embedding), row), expected));
  }
}

}  // namespace
