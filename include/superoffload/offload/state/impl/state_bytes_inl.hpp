// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE state_bytes bytes_of(placement const& buckets, zero::offloaded_units const& offloaded,
                                         state_layout const& layout) {
  state_bytes all;
  // Planning counts the buckets of many plans, and neighbours have the same size, but for a few.
  std::int64_t size = -1;
  int unit = -1;
  std::size_t split = 0, whole = 0, weights = 0;
  bool weight_on_host = false;
  for (auto const& b : buckets) {
    if (b.count != size) {
      size = b.count;
      split = layout.split(size);
      whole = layout.whole(size);
      weights = layout.weights(size);
    }
    if (b.unit != unit) {
      unit = b.unit;
      weight_on_host = offloaded.weights_of(unit);
    }
    all.elements[static_cast<std::size_t>(b.where)] += size;
    switch (b.where) {
      case tier::resident:
        all.resident += split;
        break;
      case tier::host:
        (weight_on_host ? all.in_place : all.whole) += weight_on_host ? split : whole;
        all.pinned_buffer = std::max(all.pinned_buffer, weights);
        break;
      case tier::device_updated:
        all.device_updated += split;
        all.staging_buffer = std::max(all.staging_buffer, layout.device_updated(size, weight_on_host));
        break;
    }
  }
  return all;
}

SUPEROFFLOAD_INLINE state_bytes bytes_of(configuration const& a, std::size_t element_bytes) {
  auto all = bytes_of(a.buckets, a.offloaded, {a.format, element_bytes});
  all.whole *= a.double_buffered ? 2 : 1;
  return all;
}

}  // namespace superoffload::offload
