// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/planning/workload.hpp>

namespace superoffload::offload {

/// The least seconds of a step at the rates of `m`, without collectives. It is the larger of two: the time of
/// the busiest of device, CPU Adam and link, slowed by the others as if they worked all the time; and the
/// passes before the check, then the work that must wait for the check and overlaps the next forward only.
/// A simulated step may take less where one of these works for a part of the time only.
double step_bound(plan const& p, workload const& w, machine const& m);

/// The same where device, CPU Adam and link work beside each other no more than they must, and slow each other
/// only then: no simulation of the plan takes less.
double least_step_time(plan const& p, workload const& w, machine const& m);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/step_bound_inl.hpp>
#endif
