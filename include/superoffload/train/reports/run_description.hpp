// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/train/reports/report_choice.hpp>
#include <superoffload/train/run/metrics.hpp>
#include <superoffload/train/run/run_state.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::train {

/// What reports say of a run besides its metrics.
struct run_description {
  std::string identity;            ///< of the run, and of its later sessions
  std::string title;               ///< for people
  named_values settings;           ///< the flags
  named_values machine;            ///< what the plan knows of it, for people
  std::string plan_text;           ///< the plan for people
  offload::plan plan;              ///< the same as numbers
  double gemm_rate = 0.0;          ///< FLOP/s that the GEMMs of all ranks reach together; 0: not known
  std::vector<std::string> units;  ///< their names
  std::int64_t total_steps = 0;    ///< of the whole run
  wandb_names wandb;               ///< names for Weights & Biases
};

/// What takes the metrics of a run, after every step and evaluation. A sink keeps nothing in memory that a
/// kill would lose.
template <class Sink>
concept report_sink = requires(Sink& sink, step_metrics const& step, evaluation_metrics const& evaluation) {
  { sink.step(step) } -> std::same_as<void>;
  { sink.evaluation(evaluation) } -> std::same_as<void>;
};

/// Names and values for a curve each.
using scalars = std::vector<std::pair<std::string_view, double>>;

/// Of a step. Model FLOPs are also given as a share of `gemm_rate`, if it is known.
scalars scalars_of(step_metrics const& m, double gemm_rate);
scalars scalars_of(evaluation_metrics const& m);
/// The planned memory by kind, which the run allocates.
scalars scalars_of(offload::plan const& p);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/reports/impl/run_description_inl.hpp>
#endif
