// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/timeline.hpp>
#include <superoffload/zero/shard.hpp>

#include <cstddef>
#include <vector>

namespace superoffload::offload {

/// What a rank exchanges with the others for a unit, in bytes that leave it, as many as come.
struct unit_collectives {
  double weights = 0.0;   ///< gathered before a forward or backward, unless they are still there
  double gradient = 0.0;  ///< reduced after the backward of each micro-batch; 0: the unit is frozen
};

/// What zero::sharded_store exchanges in a step.
struct collectives {
  std::vector<unit_collectives> units;  ///< in the order of the forward; none: the rank is alone
  int tied_to_last = -1;                ///< the unit whose weights the last one uses, too; none: negative
};

/// The exchanges of a step in their order, and what waits for what. Passes are numbered: in each micro-batch
/// forwards in the order of the units, then backwards.
struct collective_order {
  struct operation {
    activity what;  ///< gather, reduce
    int unit;
    double bytes;
    std::size_t after;  ///< passes of the step that have ended before it begins
  };
  /// A unit's gradient is final for whoever updates.
  struct announcement {
    int unit;
    std::size_t after;       ///< passes that have ended before
    std::size_t operations;  ///< operations that have ended before
  };
  std::vector<operation> operations;        ///< one after the other
  std::vector<std::size_t> needed;          ///< of each pass: operations that have ended before it begins
  std::vector<announcement> announcements;  ///< in their order; the last one is the end of the backward
};

/// Of an operation, while nothing is beside it.
double seconds_of(machine const& m, collective_order::operation const& o);

/// Of a step behind others, which have left the weights of frozen units where they were. Whether the ends
/// meet is `e`'s to say.
collective_order order_of(collectives const& e, zero::gather_buffers buffers, int micro_batches);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/collectives_inl.hpp>
#endif
