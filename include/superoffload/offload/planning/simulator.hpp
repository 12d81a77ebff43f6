// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/schedule.hpp>
#include <superoffload/offload/planning/timeline.hpp>

namespace superoffload::offload {

/// Simulates training steps event by event until they repeat; with a hit rate between 0 and 1, for as long as
/// its pattern. For buckets off the device, scheduler decides what is done next, as it does for
/// offload::worker. Each lane works on one thing at a time. Copies slow down while both directions are busy
/// or CPU Adam runs; CPU Adam slows down while copies run. Device updates take the compute lane's time.
///
/// * A gradient is final when its unit's backward of the last micro-batch ends. It is copied into a pinned
///   buffer: before the check the newest first, after it in the order of the forward.
/// * Before the check, CPU Adam makes speculative updates into a second pinned buffer, if the state
///   speculates. In the immediate mode, CPU Adam and the device update at once. After the check, CPU Adam
///   writes new weights over the gradient. A speculative update keeps its gradient's buffer until it is
///   committed: in one pass with the next step, which then sends its weights from that buffer, or in idle
///   time, unless an update waits for device-updated state.
/// * Gradients of offloaded weights are held in pinned buffers until the check; in the immediate mode they
///   are used at once. The weights are updated on the host, and go up when the next forward needs them.
/// * If the check disagrees, a speculative update is replaced by one with the true clip factor.
/// * Weights go up in the order in which they were made. Offloaded weights go first, each unit when all of it
///   is up to date. State of device-updated buckets takes the remaining time of the link.
/// * An offloaded gradient takes a device buffer for its backward. It frees the buffer when its last bucket
///   has left, in the order of the buffers. Its sum goes down after each backward but the last. It comes up
///   before each backward but the first, once that micro-batch's backward runs and a buffer is free.
/// * A device-updated bucket is updated when its state is staged, its gradient is final, and the check is
///   done or not needed.
/// * A unit's first forward in a step waits for its own weights, or for all weights.
/// * All ranks do the same. Collectives run one after the other in the order of collective_order, beside
///   compute. Each waits for the passes that free its buffer or write its gradient. A unit's weights are
///   gathered when its shard is back and resident state is updated. A pass waits for its unit and for a
///   gradient buffer. It also waits until CPU Adam has updated the next unit's shard and until a reduced
///   gradient that is offloaded has a buffer, since the host waits for these before it queues on. A gradient
///   is final one unit later, when it is reduced; the check follows the last one.
///
/// \throws error(cannot_fit) for a deadlock: too few pinned buffers, or too few for gradients before the
/// check.
timeline simulate(machine const& m, schedule const& s);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/simulator_inl.hpp>
#endif
