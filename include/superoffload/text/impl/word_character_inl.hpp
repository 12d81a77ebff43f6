// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/character_class.hpp>
#include <superoffload/text/word_character.hpp>

namespace superoffload::text {

SUPEROFFLOAD_INLINE bool is_word_character(char32_t c) noexcept {
  using enum character_class;
  constexpr auto words = set_of(upper, lower, letter, mark, digit, connector);
  if ((set_of(character_table::unicode()[c]) & words) != 0) {
    return true;
  }
  // Alphabetic symbols (circled and squared letters) and the joiners.
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
         (c >= 0x1f170 && c <= 0x1f189) || c == 0x200c || c == 0x200d;
}

}  // namespace superoffload::text
