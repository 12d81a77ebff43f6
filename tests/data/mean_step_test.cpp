// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/mean_step.hpp>

#include <doctest/doctest.h>

#include "drawn_lengths.hpp"
#include "numbered_examples.hpp"

using namespace superoffload;
using namespace superoffload::data;

namespace {

TEST_CASE("the means of whole steps, without the smaller one at the end of an epoch") {
  auto const examples = testing::examples_of({{1, 2}, {3, 4, 5, 6}, {7}, {8, 9, 10}, {11}});
  auto const mean = mean_step_of(examples, {.batch_size = 2, .shuffle = false});
  CHECK(mean.tokens == 5.0);      // (2 + 4 + 1 + 3) / 2
  CHECK(mean.batch_rows == 5.0);  // a step is one micro-batch
  CHECK(mean.square == 15.0);     // (4 + 16 + 1 + 9) / 2
  auto const padded = mean_step_of(
      examples, {.batch_size = 2, .shuffle = false, .padding = pad_to::max_length, .max_length = 4});
  CHECK(padded.tokens == 5.0);
  CHECK(padded.batch_rows == 8.0);
  CHECK(padded.square == 32.0);
  CHECK(mean_step_of(examples, {.batch_size = 5}).tokens == 11.0);
  CHECK(mean_step_of(examples, {.batch_size = 2, .shuffle = false}, 1).tokens == 6.0);
}

TEST_CASE("the means of a step are shared by ranks and micro-batches") {
  auto const examples = testing::log_normal_examples(1000, 2048);
  auto const whole = mean_step_of(examples, {.batch_size = 16});
  auto const parts = mean_step_of(examples, {.batch_size = 16, .micro_batches = 2, .world = 4});
  CHECK(parts.tokens == doctest::Approx(whole.tokens));
  CHECK(8.0 * parts.batch_rows == doctest::Approx(whole.batch_rows));
  CHECK(8.0 * parts.square == doctest::Approx(whole.square));
}

}  // namespace
