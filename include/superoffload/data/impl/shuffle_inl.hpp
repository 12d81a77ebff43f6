// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/shuffle.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace superoffload::data {

SUPEROFFLOAD_INLINE std::vector<std::int64_t> shuffled_rows(std::int64_t rows, std::uint64_t seed,
                                                            std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < order.size(); ++i) { order[i] = static_cast<std::int64_t>(i); }
  for (std::size_t i = order.size(); i-- > 1;) {
    std::swap(order[i], order[random_bits(seed, static_cast<std::uint64_t>(epoch), i) % (i + 1)]);
  }
  return order;
}

}  // namespace superoffload::data
