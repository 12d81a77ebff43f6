// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/batch.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace superoffload::data {

/// The next of the sizes that a batch of `rows` rows may have, where the largest has `most`: at most 128
/// sizes from a power of two to the next, multiples of 16, and `most`. So a batch of at least 2,048 rows
/// grows by less than 1 %, and what a device prepares for a size is used again.
constexpr std::int64_t rounded_rows(std::int64_t rows, std::int64_t most) {
  constexpr std::int64_t tile = 16;
  auto const octave = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows)));
  auto const step = std::max(tile, octave / 256);
  return std::min(most, (rows + step - 1) / step * step);
}

/// Rows of a document of padding, where shorter ones are not asked for: it takes next to no attention.
inline constexpr std::int64_t short_document = 64;

/// Appends `rows` rows without a target, in documents of at most `longest` rows.
void add_rows_without_targets(batch& to, std::int64_t rows, std::int64_t longest, std::int32_t id);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/row_sizes_inl.hpp>
#endif
