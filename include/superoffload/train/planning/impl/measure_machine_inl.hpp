// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/gemm_format.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/placement.hpp>
#include <superoffload/train/planning/measure_machine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::train {

SUPEROFFLOAD_INLINE offload::probe probe_of(model::config const& c,
                                            std::vector<autograd::unit_layout> const& units,
                                            std::size_t element_bytes, step_shape const& shape,
                                            offload::settings const& s) {
  auto const expected = detail::expected_of(shape).micro_batch;
  offload::probe p{.rows = expected.rows,
                   .inner = c.hidden,
                   .columns = 2 * c.intermediate,
                   .experts = c.experts,
                   .each = c.experts_per_token,
                   .float8 = c.gemms == gemm_format::float8,
                   .attention = {.starts = nullptr,
                                 .documents = std::max<std::int64_t>(1, expected.rows / expected.positions),
                                 .rows = expected.rows,
                                 .heads = static_cast<std::int32_t>(c.heads),
                                 .kv_heads = static_cast<std::int32_t>(c.kv_heads),
                                 .head_dim = static_cast<std::int32_t>(c.head_dim),
                                 .longest = static_cast<std::int32_t>(expected.positions),
                                 .scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim))},
                   .format = s.state,
                   .cores_share = s.cpuadam_cores_perc};
  for (auto const& b :
       offload::buckets_of(units, s.bucket_bytes / static_cast<std::int64_t>(element_bytes))) {
    p.bucket = std::max(p.bucket, b.count);
    p.state += b.count;
  }
  return p;
}

}  // namespace superoffload::train
