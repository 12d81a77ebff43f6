// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include <superoffload/core/error.hpp>
#include <superoffload/text/split_pattern.hpp>

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace superoffload::text {
namespace {

constexpr std::array<std::string_view, 4> known_patterns{
    // Llama 3, Phi 4
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    // Qwen 3
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    // Seed-OSS
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)",
    // gpt-oss
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};

// In PCRE2 \s holds U+180E too; the patterns were written for an engine where it is exactly White_Space.
constexpr std::string_view white_space =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

/// `pattern` with every \s and \S spelt out.
std::string with_explicit_white_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    auto const escape = pattern.substr(i, 2);
    if (escape == R"(\s)") {
      out += in_class ? std::string{white_space} : concat('[', white_space, ']');
      ++i;
    } else if (escape == R"(\S)") {
      out += concat("[^", white_space, ']');
      ++i;
    } else {
      in_class = pattern[i] == '[' || (in_class && pattern[i] != ']');
      out += pattern[i];
    }
  }
  return out;
}

}  // namespace

split_pattern::split_pattern(std::string_view published, std::string_view where) {
  bool const known = std::ranges::find(known_patterns, published) != known_patterns.end();
  expect(known, exit_code::bad_input, where, ": unknown pattern '", printable(published),
         "'; expected one of those of Llama 3, Phi 4, Qwen 3, Seed-OSS or gpt-oss");
  auto const pattern = with_explicit_white_space(published);
  int reason = 0;
  PCRE2_SIZE offset = 0;
  // Anchored: the alternatives cover every character, so each piece begins where the last one ended.
  auto* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &reason, &offset, nullptr);
  expect(code != nullptr, exit_code::internal, "PCRE2 refused a split pattern at ", offset, ": error ",
         reason);
  code_ = std::shared_ptr<void const>(
      code, [](void const* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); });
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT, pcre2_match interprets
}

std::vector<std::string_view> split_pattern::operator()(std::string_view text) const {
  auto const* const code = static_cast<pcre2_code const*>(code_.get());
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> const match{
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free};
  expect(match != nullptr, exit_code::internal, "out of memory for a match");
  auto const* const bounds = pcre2_get_ovector_pointer(match.get());
  std::vector<std::string_view> pieces;
  pieces.reserve(text.size() / 4);
  for (std::size_t at = 0; at < text.size(); at = bounds[1]) {
    int const matched = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                    PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    expect(matched > 0 && bounds[1] > at, exit_code::internal, "splitting text failed at byte ", at,
           ": error ", matched);
    pieces.push_back(text.substr(at, bounds[1] - at));
  }
  return pieces;
}

}  // namespace superoffload::text
