// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/text/character_class.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::text {

/// A regular expression, matched by trying everything in order, in exponential time at worst: the reference
/// for text/split_pattern. It supports only the syntax of the published split patterns.
class reference_pattern {
public:
  explicit reference_pattern(std::string_view pattern) : rest_{pattern}, root_{alternatives()} {
    if (!rest_.empty()) {
      throw std::invalid_argument{"expected the end: " + std::string{rest_}};
    }
  }

  /// The pieces of valid UTF-8.
  [[nodiscard]] std::vector<std::string_view> operator()(std::string_view text) const {
    std::u32string points;
    std::vector<std::size_t> bounds{0};
    while (bounds.back() < text.size()) {
      auto const step = first_step(text.substr(bounds.back()));
      points += step.code_point;
      bounds.push_back(bounds.back() + step.length);
    }
    std::vector<std::string_view> pieces;
    for (std::size_t at = 0, end = 0; at < points.size(); at = end) {
      auto const keep = [&](std::size_t matched) {
        end = matched;
        return true;
      };
      if (!root_(points, at, keep) || end == at) {
        throw std::logic_error{"no match"};
      }
      pieces.push_back(text.substr(bounds[at], bounds[end] - bounds[at]));
    }
    return pieces;
  }

private:
  using then = std::function<bool(std::size_t)>;  ///< whether the rest matches from there
  using node = std::function<bool(std::u32string_view, std::size_t, then const&)>;
  using test = std::function<bool(char32_t)>;

  bool take(std::string_view what) {
    bool const there = rest_.starts_with(what);
    rest_.remove_prefix(there ? what.size() : 0);
    return there;
  }

  char take_any() {
    char const c = rest_.at(0);
    rest_.remove_prefix(1);
    return c;
  }

  void expect_next(std::string_view what) {
    if (!take(what)) {
      throw std::invalid_argument{"expected " + std::string{what} + ": " + std::string{rest_}};
    }
  }

  node alternatives() {
    node left = sequence();
    while (take("|")) {
      left = [left, right = sequence()](auto text, auto at, auto const& next) {
        return left(text, at, next) || right(text, at, next);
      };
    }
    return left;
  }

  node sequence() {
    if (rest_.empty() || rest_[0] == '|' || rest_[0] == ')') {
      return [](auto, auto at, auto const& next) { return next(at); };
    }
    auto const first = quantified();
    return [first, others = sequence()](auto text, auto at, auto const& next) {
      return first(text, at, [&](std::size_t end) { return others(text, end, next); });
    };
  }

  node quantified() {
    auto const what = atom();
    if (take("?")) {
      return repeated(what, 0, 1);
    }
    if (take("*")) {
      return repeated(what, 0, -1);
    }
    if (take("+")) {
      return repeated(what, 1, -1);
    }
    if (take("{")) {
      int const least = take_any() - '0';
      int const most = take(",") ? take_any() - '0' : least;
      expect_next("}");
      return repeated(what, least, most);
    }
    return what;
  }

  /// As many as possible, then one less, and so on. `most` < 0: any number.
  static node repeated(node const& what, int least, int most) {
    return [=](auto text, auto at, auto const& next) {
      std::function<bool(std::size_t, int)> const from = [&](std::size_t start, int count) {
        auto const again = [&](std::size_t end) { return from(end, count + 1); };
        return (count != most && what(text, start, again)) || (count >= least && next(start));
      };
      return from(at, 0);
    };
  }

  node atom() {
    if (take("(?!")) {
      auto const inner = alternatives();
      expect_next(")");
      return [inner](auto text, auto at, auto const& next) {
        return !inner(text, at, [](std::size_t) { return true; }) && next(at);
      };
    }
    if (take("(?i:")) {
      ignores_case_ = true;
      auto const inner = alternatives();
      ignores_case_ = false;
      expect_next(")");
      return inner;
    }
    return [accepts = take("[") ? set() : character()](auto text, auto at, auto const& next) {
      return at < text.size() && accepts(text[at]) && next(at + 1);
    };
  }

  test set() {
    bool const negated = take("^");
    std::vector<test> members;
    while (!take("]")) { members.push_back(character()); }
    return [=](char32_t c) {
      return negated != std::ranges::any_of(members, [c](auto const& member) { return member(c); });
    };
  }

  test character() {
    if (!take("\\")) {
      auto const wanted = static_cast<unsigned char>(take_any());
      // The only character outside of A to Z that folds to a letter of the contractions is the long s.
      auto const fold = [](char32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c == 0x17f ? U's' : c; };
      return [=, folds = ignores_case_](char32_t c) { return (folds ? fold(c) : c) == wanted; };
    }
    switch (char const escape = take_any()) {
      case 'r':
        return [](char32_t c) { return c == '\r'; };
      case 'n':
        return [](char32_t c) { return c == '\n'; };
      case 's':
        return is_white_space;
      case 'S':
        return [](char32_t c) { return !is_white_space(c); };
      case 'p': {
        expect_next("{");
        auto const end = rest_.find('}');
        auto const members = property(rest_.substr(0, end));
        rest_.remove_prefix(end + 1);
        return [=](char32_t c) { return (set_of(character_table::unicode()[c]) & members) != 0; };
      }
      default:
        throw std::invalid_argument{"unknown escape " + std::string{escape}};
    }
  }

  /// Lu and Lt form one class, and so do Lm and Lo: no pattern has one without the other.
  static character_set property(std::string_view name) {
    using enum character_class;
    std::vector<std::pair<std::string_view, character_set>> const known{{"L", set_of(upper, lower, letter)},
                                                                        {"N", set_of(digit, numeral)},
                                                                        {"M", set_of(mark)},
                                                                        {"Lu", set_of(upper)},
                                                                        {"Lt", set_of(upper)},
                                                                        {"Ll", set_of(lower)},
                                                                        {"Lm", set_of(letter)},
                                                                        {"Lo", set_of(letter)}};
    auto const found = std::ranges::find(known, name, &std::pair<std::string_view, character_set>::first);
    return found == known.end() ? throw std::invalid_argument{std::string{name}} : found->second;
  }

  std::string_view rest_;  ///< the rest of the pattern, not parsed yet
  bool ignores_case_ = false;
  node root_;
};

}  // namespace superoffload::text
