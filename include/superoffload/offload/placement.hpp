// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/kernel/reduction.hpp>

#include <cstdint>
#include <vector>

namespace superoffload::offload {

/// The memory tier of a bucket's optimizer state, and the processor that updates it.
enum class tier {
  resident,        ///< in device memory, updated by the device after the gradient check
  host,            ///< in host memory, updated by CPU Adam on pinned threads
  device_updated,  ///< in host memory, copied to the device, updated there and copied back
};

/// A contiguous piece of a unit's flat buffer: the unit of one copy over the link and of one optimizer task.
struct bucket {
  int unit = 0;                 ///< unit_layout::id() of its unit
  std::int64_t offset = 0;      ///< in elements from the start of the unit, a multiple of kernel::norm_grid
  std::int64_t count = 0;       ///< elements
  tier where = tier::resident;  ///< of its optimizer state

  friend bool operator==(bucket const&, bucket const&) = default;  ///< of place and tier
};

/// The buckets of every trainable unit, sorted by unit and offset, without gaps.
using placement = std::vector<bucket>;

/// Throws `error` (internal) unless the buckets are those of every trainable unit, without gaps. State that
/// no bucket has would be lost.
void expect_covers(placement const& buckets, std::vector<autograd::unit_layout> const& units);

/// Cuts units into buckets of at most `elements`, all of them resident. Cuts lie on the grid of the gradient
/// norm's sums, so that the norm does not depend on them. The buckets of a unit differ by at most one grid
/// cell.
placement buckets_of(std::vector<autograd::unit_layout> const& units, std::int64_t elements);

/// Moves the state of `ratio` of the elements off the device, as far as whole buckets allow.
/// `device_updated_share` of these become device-updated, evenly mixed with those on the host. The last unit
/// stays on the device first, since its gradient and its weights are needed around the turn from forward to
/// backward. The other units follow in the order of the forward.
void place_by_share(placement& buckets, double ratio, double device_updated_share);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/impl/placement_inl.hpp>
#endif
