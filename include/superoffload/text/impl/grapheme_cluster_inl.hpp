// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/utf8.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utf8proc.h>

namespace superoffload::text::detail {

/// The bytes of the extended grapheme cluster that `text` begins with, which must not be empty: what Unicode
/// calls one character of a reader, in the version of utf8proc.
SUPEROFFLOAD_INLINE std::size_t cluster_length(std::string_view text) {
  auto last = first_step(text);
  auto length = last.length;
  std::int32_t state = 0;
  while (length < text.size()) {
    auto const next = first_step(text.substr(length));
    if (utf8proc_grapheme_break_stateful(static_cast<std::int32_t>(last.code_point),
                                         static_cast<std::int32_t>(next.code_point), &state)) {
      break;
    }
    length += next.length;
    last = next;
  }
  return length;
}

}  // namespace superoffload::text::detail
