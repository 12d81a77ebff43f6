// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/rope_tables.hpp>

#include <doctest/doctest.h>

#include "model/small_model.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;

model::config with_longrope(std::int64_t original, std::vector<double> short_factors,
                            std::vector<double> long_factors) {
  auto c = test::small_config("llama");
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
    test::small_model<model::llama> m{c};
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
  test::check_gradients<model::llama>(with_longrope(3, fast, slow));
}

TEST_CASE("longrope has a second table only for documents that need it") {
  auto const bytes = [](std::int64_t original, std::int64_t positions) {
    return model::llama{with_longrope(original, {1.0, 2.0}, {3.0, 4.0})}.table_bytes<double>(positions);
  };
  auto const of_position = 2 * 2 * sizeof(double);  // the cosine and the sine of two frequencies
  CHECK(bytes(8, 8) == 8 * of_position);
  CHECK(bytes(7, 8) == (7 + 8) * of_position);
  CHECK(model::llama{test::small_config("llama")}.table_bytes<double>(8) == 8 * of_position);
}

TEST_CASE("dynamic scaling has no table for more positions than the model was made for") {
  auto c = test::small_config("llama");
  c.scaling = {.kind = model::rope_scaling::rule::dynamic, .factor = 2.0};
  c.max_positions = 8;
  CHECK_NOTHROW(test::small_model<model::llama>{c});  // whose table has 8
  c.max_positions = 7;
  CHECK_THROWS_WITH_AS(test::small_model<model::llama>{c},
                       doctest::Contains("'dynamic' is supported up to max_position_embeddings, 7"), error);
}

}  // namespace
