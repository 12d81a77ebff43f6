// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/placement.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE void expect_covers(placement const& buckets,
                                       std::vector<autograd::unit_layout> const& units) {
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

SUPEROFFLOAD_INLINE placement buckets_of(std::vector<autograd::unit_layout> const& units,
                                         std::int64_t elements) {
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

SUPEROFFLOAD_INLINE void place_by_share(placement& buckets, double ratio, double device_updated_share) {
  if (buckets.empty()) {
    return;
  }
  std::int64_t elements = 0;
  for (auto const& b : buckets) { elements += b.count; }
  double const resident = (1.0 - ratio) * static_cast<double>(elements);
  std::int64_t before = 0, off = 0, device_updated = 0;
  // The middle of a bucket behind `start` elements decides.
  auto const up_to = [](std::int64_t start, std::int64_t count) {
    return 0.5 * static_cast<double>(2 * start + count);
  };
  auto const place = [&](auto begin, auto end) {
    for (auto b = begin; b != end; ++b) {
      if (up_to(before, b->count) <= resident) {
        b->where = tier::resident;
      } else {
        off += b->count;
        bool const by_device =
            up_to(device_updated, b->count) <= device_updated_share * static_cast<double>(off);
        b->where = by_device ? tier::device_updated : tier::host;
        device_updated += by_device ? b->count : 0;
      }
      before += b->count;
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
