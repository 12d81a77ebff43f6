// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/planning/simulator.hpp>
#include <superoffload/offload/planning/workload.hpp>
#include <superoffload/offload/settings.hpp>

#include <vector>

namespace superoffload::offload {

/// Decides places, slots and staging of the optimizer's state, what is computed again, and whether weights
/// are streamed, so that a step takes least time among what fits the memory of `m` and obeys `s`.
///
/// State goes to the device first, as much as fits beside the activations, in the order of place_by_share;
/// the rest is split between CPU Adam and streaming. Gradients, or weights and gradients, of blocks leave the
/// device where nothing else fits, and where a step takes 3 % less time so; of the sums of several
/// micro-batches no more than the device is short of. Every candidate is judged by
/// simulating it; among those within a third of a percent of the fastest the one that takes less memory is
/// preferred. Deterministic.
///
/// A plan that does not fit says so and what would; see expect_fits.
plan make_plan(std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
               settings const& s);

/// By 3 %, which plans can tell: is it worth taking more of the host?
inline bool clearly_faster(plan const& a, plan const& b) { return a.step_time < 0.97 * b.step_time; }

/// Does make_plan() find one that fits? Without a simulation: a thousand times as fast.
bool can_fit(std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
             settings const& s);

/// Lets the weights of a rank's units stay whole from forward to backward, which are then gathered once and
/// not twice: of as many as the plan leaves device memory for, where a step takes less time so. What else was
/// decided stays, so this comes last. `p` is of the same arguments, and one that does not fit stays as it is.
plan keep_whole(plan p, std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
                settings const& s);

/// The schedule that a plan was judged by.
schedule schedule_of(plan const& p, workload const& w, machine const& m);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/planner_inl.hpp>
#endif
