// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/machine.hpp>
#include <superoffload/offload/timeline.hpp>
#include <superoffload/zero/shard.hpp>

#include <cstddef>
#include <vector>

namespace superoffload::offload {

/// What a rank exchanges with the others for a unit, in bytes that leave it, as many as come.
struct unit_exchange {
  double weights = 0.0;   ///< gathered before a forward or backward, unless they are still there
  double gradient = 0.0;  ///< reduced after the backward of each micro-batch; 0: the unit is frozen
};

/// What zero::sharded_store exchanges in a step.
struct exchanges {
  std::vector<unit_exchange> units;  ///< in the order of the forward; none: the rank is alone
  int used_by_last = -1;             ///< the unit whose weights the last one uses, too; none: negative
};

/// The exchanges of a step in their order, and what waits for what. Passes are numbered: in each micro-batch
/// forwards in the order of the units, then backwards.
struct exchange_order {
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
double seconds_of(machine const& m, exchange_order::operation const& o);

/// Of a step behind others, which have left the weights of frozen units where they were. Whether the ends
/// meet is `e`'s to say.
exchange_order order_of(exchanges const& e, zero::gather_rooms rooms, int micro_batches);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/impl/exchange_inl.hpp>
#endif
