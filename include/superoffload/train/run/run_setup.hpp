// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/train/engine/engine_options.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/run/run_data.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// The engine's options for the options of a run.
inline engine_options engine_options_of(training_options const& o) {
  engine_options e;
  e.adamw = o.adamw;
  e.max_grad_norm = o.max_grad_norm;
  e.max_rows = most_rows(o);
  e.sequence_ranks = o.sequence_ranks;
  e.max_positions = o.max_length;
  e.accumulates = o.accumulation > 1;
  e.recompute = o.recompute;
  e.records = o.wall_clock_breakdown || !o.trace.empty() || o.report_to.html;
  e.trainable = trained_by(o);
  if (o.undecayed == no_decay::norms_and_biases) {
    e.decays = [](autograd::tensor_entry const& tensor) { return tensor.shape.size() > 1; };
  }
  return e;
}

/// The checked options and model configuration of a run, or of one of its ranks.
struct run_setup {
  comm::host_group ranks;    ///< a group of one without ranks
  training_options options;  ///< checked; ranks but the first are not asked to report
  model::config config;      ///< of the model's directory

  /// `own` is the family that the architecture declares.
  run_setup(training_options o, comm::host_group group, model::family const* own = nullptr)
      : ranks{std::move(group)}, options{std::move(o)} {
    // It looks at files, which a single rank may fail to.
    comm::together(ranks, [&] { check(options); });
    expect(options.rank == ranks.rank() && options.ranks == ranks.ranks(), exit_code::internal,
           "options of rank ", options.rank, " of ", options.ranks, " for rank ", ranks.rank(), " of ",
           ranks.ranks());
    if (!is_rank_zero()) {
      options.metrics.clear();
      options.trace.clear();
      options.report_to = {};
      options.wall_clock_breakdown = false;
    }
    comm::together(ranks, [&] { config = config_of(options, own); });
  }

  /// Does this rank report, and write what is not sharded?
  [[nodiscard]] bool is_rank_zero() const noexcept { return ranks.is_first(); }
};

/// \throws error(bad_input) for a --freeze pattern that matches no tensor of the model.
inline void expect_freezes_something(std::vector<autograd::unit_layout> const& units,
                                     training_options const& options) {
  auto const matches_some = [&](std::string const& pattern) {
    for (auto const& unit : units) {
      for (auto const& tensor : unit.tensors()) {
        if (matches(pattern, tensor.name)) {
          return true;
        }
      }
    }
    return false;
  };
  for (auto const& pattern : options.freeze) {
    expect(matches_some(pattern), exit_code::bad_input, "--freeze '", printable(pattern),
           "' matches no tensor of the model");
  }
}

}  // namespace superoffload::train
