// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/row_sizes.hpp>
#include <superoffload/data/sequence_slice.hpp>
#include <superoffload/data/shuffle.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace superoffload::data {

SUPEROFFLOAD_INLINE batch slice_of(batch whole, std::int64_t rows, int rank, int ranks,
                                   std::int64_t longest) {
  auto const each = rows_of_slice(rows, ranks);
  add_rows_without_targets(whole, each * ranks - whole.rows(), std::min(short_document, longest),
                           whole.tokens.empty() ? 0 : whole.tokens.back());
  auto const part_of = [&](std::vector<std::int32_t> const& all) {
    std::vector<std::int32_t> part;
    if (!all.empty()) {
      auto const first = all.begin() + static_cast<std::ptrdiff_t>(rank * each);
      part.assign(first, first + static_cast<std::ptrdiff_t>(each));
    }
    return part;
  };
  return {.tokens = part_of(whole.tokens),
          .targets = part_of(whole.targets),
          .positions = part_of(whole.positions),
          .starts = std::move(whole.starts),
          .padding = part_of(whole.padding),
          .noise = random_bits(whole.noise, 0, static_cast<std::uint64_t>(rank))};
}

}  // namespace superoffload::data
