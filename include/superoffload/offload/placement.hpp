// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/kernel/reduction.hpp>

#include <algorithm>
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
inline void expect_covers(placement const& buckets, std::vector<autograd::unit_layout> const& units) {
  auto next = buckets.begin();
  for (auto const& unit : units) {
    std::int64_t covered = 0;
    for (; unit.trainable() && next != buckets.end() && next->unit == unit.id() && next->offset == covered &&
           next->count > 0 && next->count <= unit.elements() - covered;
         ++next) {
      covered += next->count;
    }
    expect(!unit.trainable() || covered == unit.elements(), exit_code::internal,
           "the buckets of a configuration end at element ", covered, " of ", unit.elements(), " of unit ",
           unit.id(), " (", unit.name(),
           "), expected those of every trainable unit, as buckets_of() cuts them");
  }
  expect(next == buckets.end(), exit_code::internal, "a configuration has a bucket of unit ",
         next == buckets.end() ? 0 : next->unit, " behind those of all trainable units");
}

/// Cuts units into buckets of at most `elements`, all of them resident. Cuts lie on the grid of the gradient
/// norm's sums, so that the norm does not depend on them. The buckets of a unit differ by at most one grid
/// cell.
inline placement buckets_of(std::vector<autograd::unit_layout> const& units, std::int64_t elements) {
  placement all;
  auto const most = std::max<std::int64_t>(1, elements / kernel::norm_grid);
  for (auto const& unit : units) {
    if (!unit.trainable()) {
      continue;
    }
    auto const cells = kernel::norm_cells(unit.elements());
    auto const pieces = (cells + most - 1) / most;
    for (std::int64_t i = 0; i < pieces; ++i) {
      auto const begin = cells * i / pieces * kernel::norm_grid;
      auto const end = std::min(unit.elements(), cells * (i + 1) / pieces * kernel::norm_grid);
      all.push_back({.unit = unit.id(), .offset = begin, .count = end - begin});
    }
  }
  return all;
}

/// Moves the state of `ratio` of the elements off the device, as far as whole buckets allow.
/// `device_updated_share` of these become device-updated, evenly mixed with those on the host. The last unit
/// stays on the device first, since its gradient and its weights are needed around the turn from forward to
/// backward. The other units follow in the order of the forward.
inline void place_by_share(placement& buckets, double ratio, double device_updated_share) {
  if (buckets.empty()) {
    return;
  }
  double elements = 0.0;
  for (auto const& b : buckets) { elements += static_cast<double>(b.count); }
  double const resident = (1.0 - ratio) * elements;
  double before = 0.0, off = 0.0, device_updated = 0.0;
  auto const place = [&](auto begin, auto end) {
    for (auto b = begin; b != end; ++b) {
      auto const count = static_cast<double>(b->count);
      if (before + 0.5 * count <= resident) {
        b->where = tier::resident;
      } else {
        off += count;
        b->where =
            device_updated + 0.5 * count <= device_updated_share * off ? tier::device_updated : tier::host;
        device_updated += b->where == tier::device_updated ? count : 0.0;
      }
      before += count;
    }
  };
  auto const not_of = [](int unit) { return [unit](bucket const& b) { return b.unit != unit; }; };
  auto const end_of_first = std::find_if(buckets.begin(), buckets.end(), not_of(buckets.front().unit));
  auto const begin_of_last = std::max(
      end_of_first, std::find_if(buckets.rbegin(), buckets.rend(), not_of(buckets.back().unit)).base());
  place(buckets.begin(), end_of_first);
  place(begin_of_last, buckets.end());
  place(end_of_first, begin_of_last);
}

}  // namespace superoffload::offload
