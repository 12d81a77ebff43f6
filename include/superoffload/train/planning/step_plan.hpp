// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/settings.hpp>
#include <superoffload/train/engine/dry_model.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/planning/step_workload.hpp>

#include <vector>

namespace superoffload::train {

/// The steps that the options ask for.
step_shape shape_of(training_options const& o);

/// The units of the optimizer state for such steps: the model's, or a rank's shards of them.
std::vector<autograd::unit_layout> units_of_state(std::vector<autograd::unit_layout> const& units,
                                                  step_shape const& shape);

/// Does a plan of such steps fit the machine?
bool step_fits(dry_model const& model, step_shape shape, offload::machine const& m,
               offload::settings const& s);

/// Plans the steps of a model. On a rank, weights stay gathered in the memory that remains. Ranks of several
/// hosts keep a copy of the weights on each, if the settings leave that open and it is clearly faster.
offload::plan plan_step(dry_model const& model, step_shape const& shape, offload::machine const& m,
                        offload::settings const& s);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/step_plan_inl.hpp>
#endif
