// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/row_sizes.hpp>

#include <algorithm>
#include <cstdint>

namespace superoffload::data {

SUPEROFFLOAD_INLINE void add_rows_without_targets(batch& to, std::int64_t rows, std::int64_t longest,
                                                  std::int32_t id) {
  if (to.starts.empty()) {
    to.starts.push_back(0);
  }
  auto const end = to.rows();
  for (; rows > 0; rows -= longest) {
    auto const length = std::min(rows, longest);
    for (std::int64_t t = 0; t < length; ++t) {
      to.tokens.push_back(id);
      to.targets.push_back(-1);
      to.positions.push_back(static_cast<std::int32_t>(t));
    }
    to.starts.push_back(static_cast<std::int32_t>(to.tokens.size()));
  }
  to.mark_padding(end);
}

}  // namespace superoffload::data
