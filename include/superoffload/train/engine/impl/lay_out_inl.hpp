// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/train/engine/lay_out.hpp>

namespace superoffload::train {

SUPEROFFLOAD_INLINE void expect_groups(char const* flag, int number, int ranks) {
  expect(number > 0 && ranks % number == 0, exit_code::bad_input, flag, " is ", number, ", but there ",
         ranks == 1 ? "is 1 rank" : concat("are ", ranks, " ranks"), "; expected a number that divides them");
}

SUPEROFFLOAD_INLINE void expect_copies(int weight_ranks, int ranks) {
  if (weight_ranks != 0) {
    expect_groups("--hybrid_sharding", weight_ranks, ranks);
  }
}

SUPEROFFLOAD_INLINE void expect_shareable(int sequence_ranks, int ranks, model::config const& config) {
  if (sequence_ranks == 1) {
    return;
  }
  expect_groups("--sequence_parallel", sequence_ranks, ranks);
  expect(config.heads % sequence_ranks == 0 && config.kv_heads % sequence_ranks == 0, exit_code::bad_input,
         "--sequence_parallel is ", sequence_ranks, ", but the model has ", config.heads, " heads and ",
         config.kv_heads, " key-value heads; expected a number that divides both");
  expect(config.load_balancing_weight == 0.0, exit_code::bad_input, "--sequence_parallel is ", sequence_ranks,
         ", but the model has a load-balancing loss, which is that of all rows of a micro-batch; expected "
         "router_aux_loss_coef 0 or output_router_logits false in config.json");
}

}  // namespace superoffload::train
