// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/character_class.hpp>
#include <superoffload/text/split_pattern.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <array>

namespace superoffload::text {

/// The variable parts of a published pattern. All of them begin with words and end with white space.
struct split_pattern::form {
  std::string_view published;
  bool ends_words_by_case;         ///< "HelloWorld's" is "Hello", "World's"; else "HelloWorld", "'s"
  int digits;                      ///< at most, in a piece of a number
  std::string_view after_symbols;  ///< what joins the symbols before it
};

namespace detail::split {

using form = split_pattern::form;

inline constexpr std::array<form, 4> known_forms{{
    // Llama 3, Phi 4
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     false, 3, "\r\n"},
    // Qwen 3
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     false, 1, "\r\n"},
    // Seed-OSS
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)",
     false, 1, ""},
    // gpt-oss
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     true, 3, "\r\n/"},
}};

using enum character_class;
inline constexpr auto letters = set_of(upper, lower, letter);
inline constexpr auto white_spaces = set_of(space, newline);
inline constexpr auto symbols = set_of(other, mark, connector);
inline constexpr auto leaders = set_of(other, mark, connector, space);  // [^\r\n\p{L}\p{N}]
inline constexpr auto caseless = set_of(letter, mark);
inline constexpr auto heads = set_of(upper, letter, mark);  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
inline constexpr auto tails = set_of(lower, letter, mark);  // [\p{Ll}\p{Lm}\p{Lo}\p{M}]

/// Matches the patterns' alternatives, in their order. A function named after alternatives returns where
/// their match from `at` ends, or 0 when they do not match.
class scanner {
public:
  scanner(std::string_view text, form const& pattern) noexcept : text_{text}, form_{pattern} {}

  [[nodiscard]] std::size_t piece(std::size_t at) const noexcept {
    auto end = form_.ends_words_by_case ? cased_word(at) : word(at);
    if (end == 0) {
      end = number(at);
    }
    if (end == 0) {
      end = symbol_run(at);
    }
    return end != 0 ? end : white_space(at);
  }

private:
  struct character {
    character_set kind;  ///< the class; empty at the end of the text
    std::size_t end;
  };

  character read(std::size_t at) const noexcept {
    if (at >= text_.size()) {
      return {set_of(), at};
    }
    if (auto const byte = static_cast<unsigned char>(text_[at]); byte < 0x80) {
      return {set_of(table_[byte]), at + 1};
    }
    auto const step = first_step(text_.substr(at));
    return {set_of(step.valid ? table_[step.code_point] : other), at + step.length};
  }

  std::size_t skip(std::size_t at, character_set kinds) const noexcept {
    for (auto c = read(at); (c.kind & kinds) != 0; c = read(at)) { at = c.end; }
    return at;
  }

  /// (?i:'s|'t|'re|'ve|'m|'ll|'d)
  std::size_t contraction(std::size_t at) const noexcept {
    auto const byte = [&](std::size_t i) { return at + i < text_.size() ? text_[at + i] : '\0'; };
    auto const lower_case = [&](std::size_t i) { return static_cast<char>(byte(i) | 0x20); };
    if (byte(0) != '\'') {
      return 0;
    }
    switch (lower_case(1)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return at + 2;
      case 'r':
      case 'v':
        return lower_case(2) == 'e' ? at + 3 : 0;
      case 'l':
        return lower_case(2) == 'l' ? at + 3 : 0;
      default:  // U+017F, the long s
        return byte(1) == '\xc5' && byte(2) == '\xbf' ? at + 3 : 0;
    }
  }

  std::size_t after_leader(std::size_t at) const noexcept {
    auto const first = read(at);
    return (first.kind & leaders) != 0 ? first.end : at;
  }

  /// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+
  std::size_t word(std::size_t at) const noexcept {
    if (auto const end = contraction(at); end != 0) {
      return end;
    }
    auto const start = after_leader(at);
    auto const end = skip(start, letters);
    return end > start ? end : 0;
  }

  /// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
  /// and, where that fails,
  /// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
  std::size_t cased_word(std::size_t at) const noexcept {
    auto const start = after_leader(at);
    auto end = with_tail(start);
    if (end == 0 && start > at) {
      end = with_tail(at);  // a mark is leader, head and tail
    }
    if (end == 0) {
      end = skip(start, heads);
      if (end == start) {
        return 0;
      }
    }
    return std::max(end, contraction(end));
  }

  /// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+
  std::size_t with_tail(std::size_t at) const noexcept {
    std::size_t after_caseless = 0;  // backtracking: the end of the last head that is a tail, too
    for (auto c = read(at); (c.kind & heads) != 0; c = read(at)) {
      at = c.end;
      after_caseless = (c.kind & caseless) != 0 ? at : after_caseless;
    }
    auto const end = skip(at, tails);
    return end > at ? end : after_caseless;
  }

  /// \p{N}{1,digits}
  std::size_t number(std::size_t at) const noexcept {
    auto const start = at;
    for (int i = 0; i < form_.digits; ++i) {
      auto const c = read(at);
      at = (c.kind & set_of(digit, numeral)) != 0 ? c.end : at;
    }
    return at > start ? at : 0;
  }

  ///  ?[^\s\p{L}\p{N}]+[after_symbols]*
  std::size_t symbol_run(std::size_t at) const noexcept {
    auto const start = text_[at] == ' ' ? at + 1 : at;
    auto const end = skip(start, symbols);
    return end == start ? 0 : std::min(text_.find_first_not_of(form_.after_symbols, end), text_.size());
  }

  /// \s*[\r\n]+|\s+(?!\S)|\s+
  std::size_t white_space(std::size_t at) const noexcept {
    std::size_t last = at;
    std::size_t end = at;
    std::size_t after_newline = 0;
    for (auto c = read(at); (c.kind & white_spaces) != 0; c = read(end)) {
      last = end;
      end = c.end;
      after_newline = c.kind == set_of(newline) ? end : after_newline;
    }
    if (after_newline != 0) {
      return after_newline;
    }
    // The last character belongs to what follows, unless it is the only one or the text ends.
    return last == at || end == text_.size() ? end : last;
  }

  std::string_view text_;
  form const& form_;
  character_table const& table_ = character_table::unicode();
};

}  // namespace detail::split

SUPEROFFLOAD_INLINE bool split_pattern::knows(std::string_view published) noexcept {
  return std::ranges::find(detail::split::known_forms, published, &detail::split::form::published) !=
         detail::split::known_forms.end();
}

SUPEROFFLOAD_INLINE split_pattern::split_pattern(std::string_view published, std::string_view where) {
  auto const found =
      std::ranges::find(detail::split::known_forms, published, &detail::split::form::published);
  expect(found != detail::split::known_forms.end(), exit_code::bad_input, where, ": unknown pattern '",
         printable(published), "'; expected one of those of Llama 3, Phi 4, Qwen 3, Seed-OSS or gpt-oss");
  form_ = &*found;
}

SUPEROFFLOAD_INLINE std::vector<std::string_view> split_pattern::operator()(std::string_view text) const {
  detail::split::scanner const cutter{text, *form_};
  std::vector<std::string_view> pieces;
  pieces.reserve(text.size() / 4);
  for (std::size_t at = 0; at < text.size();) {
    auto const end = cutter.piece(at);
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

}  // namespace superoffload::text
