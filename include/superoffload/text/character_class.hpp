// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/text/character_ranges.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace superoffload::text {

/// The classes that the regular expressions of tokenizers distinguish: unions of Unicode's general
/// categories, and White_Space. Every code point is in one class.
enum class character_class : std::uint8_t {
  other,
  upper,      ///< Lu, Lt
  lower,      ///< Ll
  letter,     ///< Lm, Lo
  mark,       ///< Mn, Mc, Me
  digit,      ///< Nd, Nl
  numeral,    ///< No
  connector,  ///< Pc
  space,      ///< White_Space without newlines
  newline,    ///< CR, LF
};

/// Unicode's general categories, in the order of character_ranges.hpp.
// clang-format off
enum class general_category : std::uint8_t {
  Lu, Ll, Lt, Lm, Lo, Mn, Mc, Me, Nd, Nl, No, Pc, Pd, Ps, Pe, Pi, Pf, Po, Sm, Sc, Sk, So, Zs, Zl, Zp, Cc, Cf, Cs, Co, Cn
};
// clang-format on

/// The class of `c`, whose category is `category`.
constexpr character_class class_of(char32_t c, general_category category) noexcept {
  using enum general_category;
  switch (category) {
    case Lu:
    case Lt:
      return character_class::upper;
    case Ll:
      return character_class::lower;
    case Lm:
    case Lo:
      return character_class::letter;
    case Mn:
    case Mc:
    case Me:
      return character_class::mark;
    case Nd:
    case Nl:
      return character_class::digit;
    case No:
      return character_class::numeral;
    case Pc:
      return character_class::connector;
    default:
      return c == '\n' || c == '\r' ? character_class::newline
             : is_white_space(c)    ? character_class::space
                                    : character_class::other;
  }
}

/// A set of classes, one bit for each.
using character_set = unsigned;

constexpr character_set set_of(std::same_as<character_class> auto... classes) noexcept {
  return ((1u << static_cast<unsigned>(classes)) | ... | 0u);
}

/// The class of every code point, in the Unicode version of character_ranges.hpp.
class character_table {
public:
  /// The one table of the program, which the first call builds.
  static character_table const& unicode() {
    static character_table const table;
    return table;
  }

  /// The class of `c`, at most U+10FFFF; `other` if it is not assigned.
  [[nodiscard]] character_class operator[](char32_t c) const noexcept {
    return c < dense_.size() ? dense_[c] : find(c);
  }

private:
  character_table() {
    for (auto entry = character_ranges.begin(); entry != character_ranges.end(); ++entry) {
      auto const next = entry + 1;
      std::size_t const end = next == character_ranges.end() ? dense_.size() : *next >> 5;
      for (std::size_t c = *entry >> 5; c < std::min(end, dense_.size()); ++c) {
        dense_[c] = class_of(static_cast<char32_t>(c), category_of(*entry));
      }
    }
  }

  static general_category category_of(std::uint32_t entry) noexcept {
    return general_category{static_cast<std::uint8_t>(entry & 31)};
  }

  static character_class find(char32_t c) noexcept {
    auto const after = std::ranges::upper_bound(character_ranges, c << 5 | 31);
    return class_of(c, category_of(*(after - 1)));
  }

  // A table for the first two planes; in the others few ranges are assigned, and rarely used.
  std::array<character_class, 0x20000> dense_{};
};

}  // namespace superoffload::text
