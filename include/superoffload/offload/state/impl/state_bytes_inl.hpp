// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <algorithm>
#include <cstddef>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE state_bytes bytes_of(placement const& buckets, zero::offloaded_units const& offloaded,
                                         state_layout const& layout) {
  state_bytes all;
  for (auto const& b : buckets) {
    bool const weight_on_host = offloaded.weights_of(b.unit);
    switch (b.where) {
      case tier::resident:
        all.resident += layout.split(b.count);
        break;
      case tier::host:
        (weight_on_host ? all.in_place : all.whole) +=
            weight_on_host ? layout.split(b.count) : layout.whole(b.count);
        all.pinned_buffer = std::max(all.pinned_buffer, layout.weights(b.count));
        break;
      case tier::device_updated:
        all.device_updated += layout.split(b.count);
        all.staging_buffer = std::max(all.staging_buffer, layout.device_updated(b.count, weight_on_host));
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
