// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/planning/workload.hpp>

namespace superoffload::offload {

/// Seconds that a step of the plan needs at least at the rates of `m`, without what ranks exchange: what its
/// busiest part takes, device, CPU Adam or the link, with the others beside it. Where that is more, the
/// passes before the check and then what has to wait for it, beside which there is the next forward alone.
double step_bound(plan const& p, workload const& w, machine const& m);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/step_bound_inl.hpp>
#endif
