// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace superoffload::data {

/// How many ids of a row are a target, of those in the ranges `learnt`. The first id never is: none precedes
/// it.
template <class Ranges>
std::int64_t label_tokens(Ranges const& learnt) noexcept {
  std::int64_t count = 0;
  for (auto const& part : learnt) {
    count += std::max<std::int64_t>(part.end - std::max<std::int64_t>(part.begin, 1), 0);
  }
  return count;
}

}  // namespace superoffload::data
