// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/planning/simulator.hpp>
#include <superoffload/offload/planning/workload.hpp>
#include <superoffload/offload/settings.hpp>

#include <limits>
#include <vector>

namespace superoffload::offload {

/// What plans share that differ in their levels of recompute alone: see plan_candidates.hpp.
struct shared_counts;

/// Decides the memory tiers and buffers of the optimizer state, what is recomputed, and which weights and
/// gradients are offloaded. The plan is the fastest one that fits the memory of `m` and obeys `s`.
/// Deterministic.
///
/// State stays on the device as far as it fits beside the activations, in the order of place_by_share. The
/// rest is split between CPU Adam and updates by the device. Gradients, or weights and gradients, of blocks
/// are offloaded if nothing else fits or if a step then takes 3 % less time; of the gradient sums of several
/// micro-batches, no more than the device lacks memory for. Candidates are simulated, unless even
/// their least time is too long. Among those within a third of a percent of the fastest, the one with
/// less memory is preferred.
///
/// A plan that does not fit says so, and what would help; see expect_fits. `limit`: seconds of a step that
/// the caller can use. If no plan is as fast, any is returned, or one that does not fit and says nothing.
/// `shared`: of earlier plans whose workloads differed in their levels of recompute alone; null: none.
plan make_plan(std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
               settings const& s, double limit = std::numeric_limits<double>::infinity(),
               shared_counts* shared = nullptr);

/// Steps that take this part of others' time are clearly faster: smaller differences are below the accuracy
/// of plans.
inline constexpr double clearly_less = 0.97;
/// Is `a` clearly faster?
inline bool clearly_faster(plan const& a, plan const& b) { return a.step_time < clearly_less * b.step_time; }

/// State leaves a device that has room for it only if a step then takes this part of its time or less: the
/// host's part of a step varies with other programs, and micro-batches smaller than the expected one wait for
/// it.
inline constexpr double worth_leaving = 0.95;

/// Does make_plan() find a plan that fits? Simulates nothing, so it is a thousand times as fast.
bool can_fit(std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
             settings const& s);

/// Keeps the weights of a rank's units gathered from forward to backward, so that they are gathered once and
/// not twice: of as many units as the plan leaves device memory for, if a step then takes less time. All
/// other decisions stay, so call this last. `p` is a plan of the same arguments; one that does not fit is
/// returned unchanged.
plan keep_whole(plan p, std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
                settings const& s);

/// The schedule that is simulated for a plan.
schedule schedule_of(plan const& p, workload const& w, machine const& m);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/planner_inl.hpp>
#endif
