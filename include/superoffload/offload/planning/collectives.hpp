// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/division.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/timeline.hpp>
#include <superoffload/zero/shard.hpp>

#include <cstddef>
#include <vector>

namespace superoffload::offload {

/// A rank's collectives for one unit, in bytes that it sends; it receives as many.
struct unit_collectives {
  double weights = 0.0;   ///< gathered before a forward or backward, unless still gathered
  double gradient = 0.0;  ///< reduced after the backward of each micro-batch; 0: the unit is frozen
  double sum = 0.0;       ///< of the gradient in the type of sums, which copies of the weights exchange
};

/// The collectives of zero::sharded_store in a step.
struct collectives {
  std::vector<unit_collectives> units;  ///< in the order of the forward; empty: a single rank
  int tied_to_last = -1;                ///< the unit whose weights the last one shares; negative: none
  int ranks = 0;                        ///< needed for several copies of the weights only
};

/// The collectives of a step in their order, with their dependencies. Passes are numbered: in each
/// micro-batch the forwards in the order of the units, then the backwards in reverse.
struct collective_order {
  /// A collective of all ranks, or of all subsets of them, on one unit.
  struct operation {
    activity what;           ///< gather or reduce
    int unit;                ///< index in collectives::units
    double bytes;            ///< that the rank sends
    std::size_t after;       ///< number of passes that end before it begins
    comm::division among{};  ///< the ranks that join
  };
  /// The point at which a unit's gradient is final for the optimizer.
  struct announcement {
    int unit;                ///< index in collectives::units
    std::size_t after;       ///< number of passes that end before it
    std::size_t operations;  ///< number of operations that end before it
  };
  std::vector<operation> operations;        ///< one after the other
  std::vector<std::size_t> needed;          ///< by pass: number of operations that end before it begins
  std::vector<announcement> announcements;  ///< in order; the last one is the end of the backward
};

/// Seconds of an operation that runs alone.
double seconds_of(machine const& m, collective_order::operation const& o);

/// The collectives of a step in the steady state, in which weights of frozen units may still be gathered from
/// the step before. `e`, not `of_rank`, says whether embeddings are tied.
collective_order order_of(collectives const& e, configuration const& of_rank, int micro_batches);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/planning/impl/collectives_inl.hpp>
#endif
