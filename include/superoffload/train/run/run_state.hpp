// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/sampler.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// Names and what they stand for.
using named_values = std::vector<std::pair<std::string, std::string>>;

/// What a checkpoint must hold besides weights and moments, so that a run goes on exactly where it stopped.
struct run_state {
  std::int64_t step = 0;            ///< steps done, skipped ones included
  std::int64_t accepted_steps = 0;  ///< steps that changed the weights
  std::int64_t skips_in_a_row = 0;
  data::position where;          ///< of the next step in the data
  double best_eval_loss = -1.0;  ///< -1: none yet
  /// How often a step's clip factor was 1, as the engine estimated it: a resumed run is planned for it. It is
  /// no part of what a run computes.
  double hit_rate = 1.0;
  /// Name and value of everything that must be the same to go on: data, their order, sizes, element type.
  named_values identity;
  /// The same of what makes it another run where it differs, but one that can go on from there: optimization,
  /// the model's configuration, the tokenizer. Empty: the checkpoint is of a version that did not say.
  named_values settings;
};

/// As JSON for a checkpoint's manifest.
std::string to_json(run_state const& state);

/// Reads what to_json wrote. \throws error(bad_input) naming `origin` and the field.
run_state parse_run_state(std::string const& text, std::string const& origin);

/// A part of a sentence for each name whose value differs, such as "lr is '0.1' and was '0.2'"; empty: none.
std::string differences(named_values const& saved, named_values const& now);

/// \throws error(bad_input) naming the first setting in which the run differs from the one that was saved.
void expect_same_identity(run_state const& saved, run_state const& now, std::string const& origin);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/run_state_inl.hpp>
#endif
