// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/schedule.hpp>
#include <superoffload/offload/planning/timeline.hpp>

namespace superoffload::offload {

/// Simulates what offload::server does, event by event, until steps repeat (with an hit rate between 0 and
/// 1: for as long as its pattern). What is done next for a bucket off the device scheduler decides, as in the
/// server; the rest is here. Lanes work on one thing at a time. The speed of copies depends on whether
/// both directions run and on CPU Adam, that of CPU Adam on how many run. Device updates take the compute
/// lane's time.
///
/// * A gradient is ready when its unit's backward of the last micro-batch ends. It goes down into a slot,
///   before the check newest first, after it in the order of the forward.
/// * Before the check CPU Adam emits into a second slot, if the state speculates; immediate, it updates,
///   and so does the device. After the check it updates in the gradient's slot. A bucket that was emitted
///   keeps its gradient's slot until it is committed, in one pass with its next step, which then sends its
///   weights from that slot, or in idle time, but for that in which an update waits for streamed state.
/// * Gradients of streamed weights are held in their slots until the check, or else updated at once; their
///   weights are where they live then, and go up as the next forward comes to them.
/// * Not accepted: what was emitted is updated with the true factor.
/// * Weights go up in the order in which they were made. With streamed weights, units go first, each when
///   everything of its own has been served. State of streamed buckets fills what time is left.
/// * A flowing gradient takes a room for its backward, and gives it away with its last bucket, after the one
/// before it. Its sum goes down after each backward but the last, and comes up before each but the first, as
/// soon as the micro-batch's backward runs and there is a room for it.
/// * A streamed bucket is updated when its state is staged, its gradient ready, and the check known, or not
///   needed.
/// * A unit's first forward in a step waits for its own weights, or for all.
/// * Of several ranks, all of which do the same: exchanges run one after the other in the order of
///   exchange_order, beside compute. Each waits for the passes that free its room or write its gradient; a
///   unit's weights are gathered when its shard is back and resident state is updated. A pass waits for its
///   unit, for a room for its gradient, and, since the host does before it queues on, for CPU Adam to have
///   served the next unit's shard and for a room for the sum of a gradient that flows. A gradient is ready
///   one unit later, when it is reduced; the check comes behind the last one.
///
/// \throws error(cannot_fit) when nothing can go on: too few slots, or no room for gradients before the
/// check.
timeline simulate(machine const& m, schedule const& s);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/simulator_inl.hpp>
#endif
