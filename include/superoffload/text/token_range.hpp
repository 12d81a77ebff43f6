// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace superoffload::text {

/// The half-open range [begin, end) of a row's tokens.
struct token_range {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  friend constexpr bool operator==(token_range, token_range) = default;
};

}  // namespace superoffload::text
