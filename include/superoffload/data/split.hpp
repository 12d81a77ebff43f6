// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace superoffload::data {

/// The half-open range [begin, end).
struct range {
  std::int64_t begin = 0;  ///< first number
  std::int64_t end = 0;    ///< one more than the last

  /// 0 for an empty range.
  [[nodiscard]] constexpr std::int64_t size() const noexcept { return end - begin; }
  friend constexpr bool operator==(range, range) = default;  ///< empty ranges with other borders differ
};

/// Part `index` of [0, count), cut into `parts` contiguous parts whose sizes differ by at most one, the
/// larger ones first. A part may be empty.
constexpr range part_of(std::int64_t count, std::int64_t parts, std::int64_t index) {
  auto const begin = [&](std::int64_t i) { return count / parts * i + std::min(i, count % parts); };
  return {begin(index), begin(index + 1)};
}

}  // namespace superoffload::data
