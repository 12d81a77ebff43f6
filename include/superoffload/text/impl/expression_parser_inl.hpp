// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/code_point_set.hpp>
#include <superoffload/text/impl/property_sets_inl.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace superoffload::text::detail::expression {

inline constexpr std::size_t longest_pattern = std::size_t{64} << 10;
inline constexpr int deepest_group = 32;
inline constexpr std::uint32_t most_repeats = 1000;
inline constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

enum class kind { set, sequence, alternatives, repeat, ahead, behind, atomic, anchor };
enum class manner { greedy, lazy, possessive };
enum class anchor { line_begin, line_end, begin, end, end_or_newline, boundary, no_boundary };

/// A part of an expression.
struct node {
  kind what = kind::sequence;
  std::vector<node> parts = {};       ///< one for a repeat, an assertion and an atomic group
  code_point_set set = {};            ///< of a set
  std::uint32_t least = 0, most = 0;  ///< of a repeat
  manner how = manner::greedy;        ///< of a repeat
  bool negative = false;              ///< of an assertion
  anchor where = anchor::begin;       ///< of an anchor

  /// The least and the most code points that it matches; `unlimited` where there is no limit.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> lengths() const {
    std::pair<std::uint64_t, std::uint64_t> all{0, 0};
    switch (what) {
      case kind::set:
        return {1, 1};
      case kind::sequence:
      case kind::atomic:
        for (auto const& part : parts) {
          auto const [least_of, most_of] = part.lengths();
          all = {std::min<std::uint64_t>(all.first + least_of, unlimited),
                 std::min<std::uint64_t>(all.second + most_of, unlimited)};
        }
        return all;
      case kind::alternatives:
        all = {unlimited, 0};
        for (auto const& part : parts) {
          auto const [least_of, most_of] = part.lengths();
          all = {std::min(all.first, least_of), std::max(all.second, most_of)};
        }
        return all;
      case kind::repeat: {
        auto const [least_of, most_of] = parts[0].lengths();
        return {std::min<std::uint64_t>(least * least_of, unlimited),
                std::min<std::uint64_t>(most * most_of, unlimited)};
      }
      default:
        return all;
    }
  }
};

inline code_point_set one(char32_t c) { return code_point_set{{{c, c}}}; }

SUPEROFFLOAD_INLINE bool has(code_point_set const& set, char32_t c) {
  return std::ranges::any_of(set.ranges(), [c](auto range) { return range.first <= c && c <= range.last; });
}

/// Reads the sets of characters of an expression.
class character_reader {
protected:
  character_reader(std::string_view pattern, std::string_view where) : pattern_{pattern}, where_{where} {
    expect(pattern.size() <= longest_pattern, exit_code::bad_input, where, ": pattern of ", pattern.size(),
           " bytes; expected at most ", longest_pattern);
    expect(find_invalid_utf8(pattern) == pattern.npos, exit_code::bad_input, where,
           ": expected a pattern in UTF-8");
  }

  [[noreturn]] void refuse(std::string_view what) const {
    fail(exit_code::bad_input, where_, ": ", what, " at byte ", at_, " of the pattern '", printable(pattern_),
         "' is not supported; expected classes, categories, scripts, groups, quantifiers, assertions and "
         "(?i:");
  }

  [[nodiscard]] std::string_view rest() const { return pattern_.substr(at_); }
  bool take(std::string_view what) {
    bool const there = rest().starts_with(what);
    at_ += there ? what.size() : 0;
    return there;
  }
  char32_t take_any() {
    if (at_ == pattern_.size()) {
      refuse("an end");
    }
    auto const step = first_step(rest());
    at_ += step.length;
    return step.code_point;
  }

  /// A character, and its other case where case is ignored. Characters whose case folds to several ones, and
  /// runs that one character folds to, are refused: nobody writes them.
  code_point_set literal(char32_t c) {
    if (!ignores_case_) {
      return one(c);
    }
    if (c >= 0x80) {
      if (has(categories({"p", "z"}), c)) {
        return one(c);
      }
      refuse("a character outside of ASCII whose case is ignored");
    }
    auto const small = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    for (std::string_view const pair : {"ss", "st", "ff", "fi", "fl"}) {
      if (folded_ == pair[0] && small == pair[1]) {
        refuse("a pair of letters that a ligature folds to");
      }
    }
    folded_ = small;
    return folded(one(c));
  }

  /// ASCII's letters in both cases, with the two characters outside of ASCII that fold to one of them.
  static code_point_set folded(code_point_set const& set) {
    std::vector<code_point_range> more;
    for (std::uint32_t c = 'a'; c <= 'z'; ++c) {
      if (has(set, c) || has(set, c - 32)) {
        more.push_back({c, c});
        more.push_back({c - 32, c - 32});
        if (c == 's' || c == 'k') {
          more.push_back(c == 's' ? code_point_range{0x17f, 0x17f} : code_point_range{0x212a, 0x212a});
        }
      }
    }
    return set.united(code_point_set{std::move(more)});
  }

  /// Behind a backslash: a set, and whether it is one character.
  std::pair<code_point_set, bool> escape(bool in_class) {
    auto const c = take_any();
    auto const word = [in_class] { return in_class ? class_word_set() : word_set(); };
    switch (c) {
      case 'n':
        return {one('\n'), true};
      case 'r':
        return {one('\r'), true};
      case 't':
        return {one('\t'), true};
      case 'f':
        return {one('\f'), true};
      case 'v':
        return {one('\v'), true};
      case 's':
        return {white_space_set(), false};
      case 'S':
        return {white_space_set().complement(), false};
      case 'd':
        return {*category_set("nd"), false};
      case 'D':
        return {category_set("nd")->complement(), false};
      case 'w':
        return {word(), false};
      case 'W':
        return {word().complement(), false};
      case 'p':
      case 'P':
        return {property(c == 'P'), false};
      case 'x':
      case 'u':
        return {one(hexadecimal(c == 'u')), true};
      default:
        if (c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
          refuse("this escape");
        }
        return {one(c), true};
    }
  }

  code_point_set property(bool negative) {
    if (!take("{")) {
      refuse("a property without '{'");
    }
    negative = take("^") != negative;
    auto const name = rest().substr(0, rest().find('}'));
    auto const found = property_set(name);
    if (!found) {
      refuse(concat("property '", printable(name), "'"));
    }
    if (ignores_case_) {
      refuse("a property whose case is ignored");
    }
    at_ += name.size();
    if (!take("}")) {
      refuse("a property without '}'");
    }
    return negative ? found->complement() : *found;
  }

  char32_t hexadecimal(bool four) {
    bool const braced = !four && take("{");
    std::size_t const most = braced ? 8 : four ? 4 : 2;
    std::uint32_t value = 0;
    std::size_t digits = 0;
    for (; digits < most && !rest().empty(); ++digits, ++at_) {
      auto const digit = std::string_view{"0123456789abcdef"}.find(static_cast<char>(rest()[0] | 0x20));
      if (digit == std::string_view::npos || rest()[0] < '0') {
        break;
      }
      value = 16 * value + static_cast<std::uint32_t>(digit);
    }
    // Oniguruma takes two digits for a byte, which is a character below 80 only.
    if (digits == 0 || (four && digits != 4) || (braced && !take("}")) || value > 0x10ffff ||
        (!braced && !four && value >= 0x80) || (ignores_case_ && value >= 'A')) {
      refuse("this number of a character");
    }
    return value;
  }

  /// Behind '['.
  code_point_set set(int depth) {
    if (depth > deepest_group) {
      refuse("nesting so deep");
    }
    bool const negative = take("^");
    code_point_set members;
    std::optional<code_point_set> others;  // what stands before &&
    bool empty = true;
    while (empty || !take("]")) {
      if (rest().starts_with(']')) {
        refuse("an empty class");
      }
      if (!empty && take("&&")) {
        others = others ? others->shared(members) : members;
        members = {};
        empty = true;
        continue;
      }
      members = members.united(take("[:") ? posix_class() : take("[") ? set(depth + 1) : set_item());
      empty = false;
    }
    if (others) {
      members = members.shared(*others);
    }
    return negative ? members.complement() : members;
  }

  /// Behind "[:".
  code_point_set posix_class() {
    bool const negative = take("^");
    auto const end = rest().find(":]");
    auto const name = rest().substr(0, end);
    auto const found = end != rest().npos ? posix_set(name) : std::nullopt;
    if (!found || ignores_case_) {
      refuse(found ? "a POSIX class whose case is ignored" : "this POSIX class");
    }
    at_ += name.size() + 2;
    return negative ? found->complement() : *found;
  }

  code_point_set set_item() {
    auto const [set, single] = set_character();
    if (!rest().starts_with('-') || rest().starts_with("-]")) {
      return ignores_case_ ? folded(set) : set;
    }
    take("-");
    auto const [last_set, last_single] = set_character();
    auto const first = set.ranges()[0].first;
    auto const last = last_set.ranges()[0].first;
    if (!single || !last_single || first > last) {
      refuse("this range of a class");
    }
    code_point_set const range{{{first, last}}};
    return ignores_case_ ? folded(range) : range;
  }

  std::pair<code_point_set, bool> set_character() {
    if (take("\\")) {
      return escape(true);
    }
    if (rest().starts_with("&&")) {
      refuse("'&&' here");
    }
    auto const c = take_any();
    if (ignores_case_ && c >= 0x80) {
      refuse("a character outside of ASCII whose case is ignored");
    }
    return {one(c), true};
  }

  std::string_view pattern_;
  std::string_view where_;
  std::size_t at_ = 0;
  bool ignores_case_ = false;
  char folded_ = '\0';  // the letter before, where case is ignored
};

/// Reads an expression into nodes.
class parser : character_reader {
public:
  parser(std::string_view pattern, std::string_view where) : character_reader{pattern, where} {}

  node read() {
    auto all = alternatives();
    if (at_ < pattern_.size()) {
      refuse("')' without '('");
    }
    return all;
  }

private:
  node alternatives() {
    if (++depth_ > deepest_group) {
      refuse("nesting so deep");
    }
    bool const outer_case = ignores_case_;
    node all{.what = kind::alternatives};
    do { all.parts.push_back(sequence()); } while (take("|"));
    ignores_case_ = outer_case;
    --depth_;
    return all.parts.size() == 1 ? std::move(all.parts[0]) : all;
  }

  node sequence() {
    node all{.what = kind::sequence};
    folded_ = '\0';
    while (at_ < pattern_.size() && !rest().starts_with('|') && !rest().starts_with(')')) {
      if (take("(?i)")) {
        ignores_case_ = true;
        continue;
      }
      all.parts.push_back(quantified());
    }
    return all;
  }

  node quantified() {
    auto what = atom();
    std::uint32_t least = 0;
    std::uint32_t most = unlimited;
    bool interval = false;
    if (take("?")) {
      most = 1;
    } else if (take("+")) {
      least = 1;
    } else if (rest().starts_with('{')) {
      std::tie(least, most) = read_interval();
      interval = true;
    } else if (!take("*")) {
      return what;
    }
    if (what.what == kind::ahead || what.what == kind::behind || what.what == kind::anchor) {
      refuse("a quantifier behind an assertion");
    }
    node repeat{.what = kind::repeat, .least = least, .most = most};
    if (!(interval && least == most) && take("?")) {
      repeat.how = manner::lazy;
    } else if (!interval && take("+")) {
      repeat.how = manner::possessive;
    }
    if (!rest().empty() && std::string_view{"*+?{"}.find(rest()[0]) != std::string_view::npos) {
      refuse("a quantifier behind another one");
    }
    if (what.lengths().first == 0 && most == unlimited) {
      refuse("any number of what may be empty");
    }
    repeat.parts.push_back(std::move(what));
    folded_ = '\0';
    return repeat;
  }

  std::pair<std::uint32_t, std::uint32_t> read_interval() {
    take("{");
    auto const number = [&](std::uint32_t otherwise) {
      std::uint32_t value = 0;
      bool any = false;
      for (; !rest().empty() && rest()[0] >= '0' && rest()[0] <= '9'; ++at_, any = true) {
        value = std::min(10 * value + static_cast<std::uint32_t>(rest()[0] - '0'), most_repeats + 1);
      }
      return any ? value : otherwise;
    };
    auto const least = number(0);
    auto const most = take(",") ? number(unlimited) : least;
    if (!take("}") || least > most || most == 0 || least > most_repeats ||
        (most > most_repeats && most != unlimited)) {
      refuse("'{' that begins no interval up to 1000");
    }
    return {least, most};
  }

  node atom() {
    if (take("(")) {
      return group();
    }
    if (take("[")) {
      folded_ = '\0';
      return {.what = kind::set, .set = set(0)};
    }
    if (take("^")) {
      return {.what = kind::anchor, .where = anchor::line_begin};
    }
    if (take("$")) {
      return {.what = kind::anchor, .where = anchor::line_end};
    }
    if (take(".")) {
      folded_ = '\0';
      return {.what = kind::set, .set = one('\n').complement()};
    }
    for (auto const& [text, where] :
         {std::pair{"\\A", anchor::begin}, std::pair{"\\z", anchor::end},
          std::pair{"\\Z", anchor::end_or_newline}, std::pair{"\\b", anchor::boundary},
          std::pair{"\\B", anchor::no_boundary}}) {
      if (take(text)) {
        return {.what = kind::anchor, .where = where};
      }
    }
    if (take("\\")) {
      folded_ = '\0';
      return {.what = kind::set, .set = escape(false).first};
    }
    if (!rest().empty() && std::string_view{"*+?{"}.find(rest()[0]) != std::string_view::npos) {
      refuse("a quantifier of nothing");
    }
    return {.what = kind::set, .set = literal(take_any())};
  }

  node group() {
    if (!rest().starts_with('?')) {
      return closed(alternatives());
    }
    for (auto const& [text, what, negative] :
         {std::tuple{"?=", kind::ahead, false}, std::tuple{"?!", kind::ahead, true},
          std::tuple{"?<=", kind::behind, false}, std::tuple{"?<!", kind::behind, true},
          std::tuple{"?>", kind::atomic, false}}) {
      if (take(text)) {
        node outer{.what = what, .negative = negative};
        outer.parts.push_back(closed(alternatives()));
        auto const [least, most] = outer.parts[0].lengths();
        if (what == kind::behind && (least != most || most > most_repeats)) {
          refuse("an assertion behind of varying length");
        }
        outer.least = static_cast<std::uint32_t>(std::min<std::uint64_t>(least, unlimited));
        return outer;
      }
    }
    if (take("?<") || take("?'")) {
      skip_name(pattern_[at_ - 1] == '<' ? '>' : '\'');
      return closed(alternatives());
    }
    bool const outer_case = ignores_case_;
    if (take("?i:")) {
      ignores_case_ = true;
    } else if (take("?-i:")) {
      ignores_case_ = false;
    } else if (!take("?:")) {
      refuse("this kind of group");
    }
    auto inner = closed(alternatives());
    ignores_case_ = outer_case;
    return inner;
  }

  /// The name of a group. Nothing refers to it, so it may be given twice.
  void skip_name(char end) {
    auto const name = rest().substr(0, rest().find(end));
    bool const begins_well =
        !name.empty() && !(name[0] >= '0' && name[0] <= '9') && has(word_set(), first_step(name).code_point);
    if (!begins_well || name.find(')') != name.npos || name.size() == rest().size()) {
      refuse("this name of a group");
    }
    at_ += name.size() + 1;
  }

  node closed(node inner) {
    if (!take(")")) {
      refuse("'(' without ')'");
    }
    folded_ = '\0';
    return inner;
  }

  int depth_ = 0;
};

}  // namespace superoffload::text::detail::expression
