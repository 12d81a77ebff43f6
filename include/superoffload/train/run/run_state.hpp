// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/sampler.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// Names and their values.
using named_values = std::vector<std::pair<std::string, std::string>>;

/// The part of a checkpoint besides weights and moments: with it, a run continues exactly where it stopped.
struct run_state {
  std::int64_t step = 0;            ///< steps done, skipped ones included
  std::int64_t accepted_steps = 0;  ///< steps that changed the weights
  std::int64_t skips_in_a_row = 0;  ///< steps whose gradient was not finite, since the last accepted one
  data::position where;             ///< of the next step
  double best_eval_loss = -1.0;     ///< -1: none yet
  double first_eval_loss = -1.0;    ///< of the held-out data, before the first step; -1: not known
  /// The engine's estimate of the share of steps with clip factor 1. A resumed run is planned for it. It
  /// changes no result.
  double hit_rate = 1.0;
  /// Settings that must be the same to continue: data, their order, sizes, element type.
  named_values identity;
  /// Settings that make it another run if they differ, but one that can continue from the checkpoint:
  /// optimization, the model's configuration, the tokenizer. Empty: the checkpoint is of a version that did
  /// not save them.
  named_values settings;
};

/// JSON for a checkpoint's manifest.
std::string to_json(run_state const& state);

/// Reads what to_json wrote. \throws error(bad_input) that names `origin` and the field.
run_state parse_run_state(std::string const& text, std::string const& origin);

/// A phrase for each name whose value differs, such as "lr is '0.1' and was '0.2'"; empty: none.
std::string differences(named_values const& saved, named_values const& now);

/// Do both have this name, with the same value?
bool have_same(named_values const& a, named_values const& b, std::string const& name);

/// \throws error(bad_input) that names the first setting in which the run differs from the saved one.
void expect_same_identity(run_state const& saved, run_state const& now, std::string const& origin);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/run_state_inl.hpp>
#endif
