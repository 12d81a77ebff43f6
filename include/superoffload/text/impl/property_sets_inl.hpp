// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/character_class.hpp>
#include <superoffload/text/character_properties.hpp>
#include <superoffload/text/code_point_set.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::text::detail::expression {

/// The code points of the entries of a table (`value >> Bits` is the first code point of an entry, which ends
/// where the next one begins) whose lower bits `wanted` accepts.
template <int Bits, class Wanted>
code_point_set table_set(std::span<std::uint32_t const> table, Wanted wanted) {
  std::vector<code_point_range> ranges;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (wanted(table[i] & ((1u << Bits) - 1))) {
      auto const end = i + 1 < table.size() ? table[i + 1] >> Bits : 0x110000;
      ranges.push_back({table[i] >> Bits, end - 1});
    }
  }
  return code_point_set{std::move(ranges)};
}

/// The code points of the general category with this name of one or two letters, in lower case. One letter
/// stands for all categories that begin with it. Nothing where there is no such category.
SUPEROFFLOAD_INLINE std::optional<code_point_set> category_set(std::string_view name) {
  static constexpr std::array<std::string_view, 30> names{
      "lu", "ll", "lt", "lm", "lo", "mn", "mc", "me", "nd", "nl", "no", "pc", "pd", "ps", "pe",
      "pi", "pf", "po", "sm", "sc", "sk", "so", "zs", "zl", "zp", "cc", "cf", "cs", "co", "cn"};
  std::uint32_t wanted = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    bool const same = name == names[i] || (name.size() == 1 && name[0] == names[i][0]) ||
                      (name == "lc" && i < 3);  // letters with a case
    wanted |= std::uint32_t{same} << i;
  }
  if (wanted == 0) {
    return std::nullopt;
  }
  return table_set<5>(character_ranges,
                      [&](std::uint32_t category) { return (wanted >> category & 1) != 0; });
}

/// The name of two letters or one of a general category that is called `full`; `full` itself where there is
/// none.
SUPEROFFLOAD_INLINE std::string_view brief_category(std::string_view full) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 41> names{
      {{"letter", "l"},
       {"casedletter", "lc"},
       {"uppercaseletter", "lu"},
       {"lowercaseletter", "ll"},
       {"titlecaseletter", "lt"},
       {"modifierletter", "lm"},
       {"otherletter", "lo"},
       {"mark", "m"},
       {"combiningmark", "m"},
       {"nonspacingmark", "mn"},
       {"spacingmark", "mc"},
       {"enclosingmark", "me"},
       {"number", "n"},
       {"decimalnumber", "nd"},
       {"digit", "nd"},
       {"letternumber", "nl"},
       {"othernumber", "no"},
       {"punctuation", "p"},
       {"punct", "p"},
       {"connectorpunctuation", "pc"},
       {"dashpunctuation", "pd"},
       {"openpunctuation", "ps"},
       {"closepunctuation", "pe"},
       {"initialpunctuation", "pi"},
       {"finalpunctuation", "pf"},
       {"otherpunctuation", "po"},
       {"symbol", "s"},
       {"mathsymbol", "sm"},
       {"currencysymbol", "sc"},
       {"modifiersymbol", "sk"},
       {"othersymbol", "so"},
       {"separator", "z"},
       {"spaceseparator", "zs"},
       {"lineseparator", "zl"},
       {"paragraphseparator", "zp"},
       {"other", "c"},
       {"control", "cc"},
       {"format", "cf"},
       {"surrogate", "cs"},
       {"privateuse", "co"},
       {"unassigned", "cn"}}};
  auto const* const found =
      std::ranges::find(names, full, &std::pair<std::string_view, std::string_view>::first);
  return found == names.end() ? full : found->second;
}

SUPEROFFLOAD_INLINE std::optional<code_point_set> script_set(std::string_view name) {
  auto const* const found = std::ranges::find_if(
      script_names, [&](auto const& script) { return script.name == name || script.brief == name; });
  if (found == script_names.end()) {
    return std::nullopt;
  }
  auto const number = static_cast<std::uint32_t>(found - script_names.begin());
  return table_set<8>(script_ranges, [&](std::uint32_t script) { return script == number; });
}

inline code_point_set set_of_ranges(std::span<code_point_range const> ranges) {
  return code_point_set{{ranges.begin(), ranges.end()}};
}

inline code_point_set white_space_set() {
  return code_point_set{{{0x09, 0x0d},
                         {0x20, 0x20},
                         {0x85, 0x85},
                         {0xa0, 0xa0},
                         {0x1680, 0x1680},
                         {0x2000, 0x200a},
                         {0x2028, 0x2029},
                         {0x202f, 0x202f},
                         {0x205f, 0x205f},
                         {0x3000, 0x3000}}};
}

/// The union of general categories.
SUPEROFFLOAD_INLINE code_point_set categories(std::initializer_list<std::string_view> names) {
  code_point_set all;
  for (auto const name : names) { all = all.united(*category_set(name)); }
  return all;
}

/// What `\w` is inside of a class: letters, marks, decimal digits, connectors and the letters in circles and
/// squares.
SUPEROFFLOAD_INLINE code_point_set class_word_set() {
  code_point_set const circled{
      {{0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}}};
  return categories({"l", "m", "nd", "nl", "pc"}).united(circled);
}

/// What `\w` is elsewhere. There Oniguruma counts a few numbers of Latin-1, too.
SUPEROFFLOAD_INLINE code_point_set word_set() {
  return class_word_set().united(code_point_set{{{0xb2, 0xb3}, {0xb9, 0xb9}, {0xbc, 0xbe}}});
}

/// A class that POSIX names, as Oniguruma has it for Unicode.
SUPEROFFLOAD_INLINE std::optional<code_point_set> posix_set(std::string_view name) {
  auto const is = [name](std::string_view other) { return name == other; };
  if (is("alpha") || is("alnum")) {
    auto const letters = set_of_ranges(alphabetic_ranges);
    return is("alpha") ? letters : letters.united(categories({"nd"}));
  }
  if (is("upper") || is("lower")) {
    return is("upper") ? set_of_ranges(uppercase_ranges) : set_of_ranges(lowercase_ranges);
  }
  if (is("digit") || is("cntrl") || is("punct")) {
    return is("digit") ? categories({"nd"}) : is("cntrl") ? categories({"cc"}) : categories({"p", "s"});
  }
  if (is("blank")) {
    return categories({"zs"}).united(code_point_set{{{'\t', '\t'}}});
  }
  if (is("graph")) {
    return categories({"cc", "cn", "cs"}).united(white_space_set()).complement();
  }
  if (is("print")) {
    return categories({"cc", "cn", "cs", "zl", "zp"}).complement();
  }
  if (is("xdigit")) {
    return code_point_set{{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}};
  }
  if (is("ascii")) {
    return code_point_set{{{0, 0x7f}}};
  }
  return is("space")  ? std::optional{white_space_set()}
         : is("word") ? std::optional{class_word_set()}
                      : std::nullopt;
}

/// The code points with a property that `\p{name}` names: a general category, a script, a class of POSIX or
/// one of a few others. Case, spaces, '_' and '-' do not matter. Nothing where the name is none of these.
SUPEROFFLOAD_INLINE std::optional<code_point_set> property_set(std::string_view name) {
  std::string plain;
  for (char const c : name) {
    if (c != ' ' && c != '_' && c != '-') {
      plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
  }
  static constexpr std::array<std::pair<std::string_view, std::span<code_point_range const>>, 7> others{
      {{"alphabetic", alphabetic_ranges},
       {"uppercase", uppercase_ranges},
       {"lowercase", lowercase_ranges},
       {"emoji", emoji_ranges},
       {"emojipresentation", emoji_presentation_ranges},
       {"extendedpictographic", extended_pictographic_ranges},
       {"ideographic", ideographic_ranges}}};
  for (auto const& [other, ranges] : others) {
    if (plain == other) {
      return set_of_ranges(ranges);
    }
  }
  if (plain == "any") {
    return code_point_set{{{0, 0x10ffff}}};
  }
  if (plain == "whitespace") {
    return white_space_set();
  }
  auto found = category_set(brief_category(plain));  // before POSIX: \p{punct} has no symbols
  if (!found) {
    found = script_set(plain);
  }
  return found ? found : posix_set(plain);
}

}  // namespace superoffload::text::detail::expression
