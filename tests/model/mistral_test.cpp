// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/mistral.hpp>

#include <doctest/doctest.h>

#include "conformance/architecture.hpp"
#include "model/small_model.hpp"

#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

using namespace superoffload;

/// Documents have four tokens, the last without a target; a token sees two.
model::config small() {
  auto c = test::small_config("mistral");
  c.windows = {2, 2};
  return c;
}

TEST_CASE("every parameter of a Mistral has the gradient that finite differences give") {
  test::check_gradients<model::mistral>(small());
}

TEST_CASE("Mistral's blocks can be recomputed") {
  CHECK(test::check_recompute<model::mistral>(small()).size() == 14);
}

TEST_CASE("Mistral keeps an architecture's contract") {
  conformance::architecture_keeps_its_contract<model::mistral>(small());
}

TEST_CASE("a Mistral equals a Llama unless its window is shorter than a document") {
  auto const gradients = []<class A>(std::type_identity<A>, std::vector<std::int32_t> const& windows) {
    auto c = test::small_config(A::model_type());
    c.windows = windows;
    test::small_model<A> m{c};
    m.gradients();
    return m.all_gradients();
  };
  std::type_identity<model::mistral> const mistral;
  auto const llama = gradients(std::type_identity<model::llama>{}, {});
  CHECK(gradients(mistral, {}) == llama);
  CHECK(gradients(mistral, {4, 4}) == llama);
  CHECK(gradients(mistral, {2, 2}) != llama);
}

}  // namespace
