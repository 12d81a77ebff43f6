// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace superoffload::text {

/// The half-open range [begin, end) of a row's tokens.
struct token_range {
  std::int32_t begin = 0;  ///< the first token
  std::int32_t end = 0;    ///< behind the last token

  /// Empty ranges with other borders differ.
  friend constexpr bool operator==(token_range, token_range) = default;
};

}  // namespace superoffload::text
