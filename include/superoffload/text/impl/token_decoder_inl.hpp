// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/byte_alphabet.hpp>
#include <superoffload/text/token_decoder.hpp>
#include <superoffload/text/utf8.hpp>

#include <optional>

namespace superoffload::text {
namespace detail {

using token_list = std::vector<std::string>;

SUPEROFFLOAD_INLINE std::string joined(token_list const& tokens, std::string_view between = "") {
  std::string all;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    all += i > 0 ? between : std::string_view{};
    all += tokens[i];
  }
  return all;
}

SUPEROFFLOAD_INLINE std::string replaced(std::string_view text, std::string_view pattern,
                                         std::string_view content) {
  std::string out;
  for (auto at = text.find(pattern); at != text.npos; at = text.find(pattern)) {
    out += text.substr(0, at);
    out += content;
    text.remove_prefix(at + pattern.size());
  }
  return out += text;
}

/// The byte of "<0x00>" to "<0xFF>".
SUPEROFFLOAD_INLINE std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') {
    return std::nullopt;
  }
  int value = 0;
  for (char const letter : token.substr(3, 2)) {
    char const small = static_cast<char>(letter >= 'A' && letter <= 'F' ? letter + 32 : letter);
    auto const digit = std::string_view{"0123456789abcdef"}.find(small);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    value = 16 * value + static_cast<int>(digit);
  }
  return static_cast<char>(value);
}

SUPEROFFLOAD_INLINE token_list decoded(byte_level_decoding, token_list tokens) {
  std::string bytes;
  for (auto const& token : tokens) { bytes += from_byte_alphabet(token).value_or(token); }
  return {to_valid_utf8(bytes)};
}

SUPEROFFLOAD_INLINE token_list decoded(byte_fallback_decoding, token_list tokens) {
  token_list out;
  std::string bytes;
  auto const flush = [&] {
    if (find_invalid_utf8(bytes) == std::string::npos) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), "\ufffd");
    }
    bytes.clear();
  };
  for (auto& token : tokens) {
    if (auto const byte = fallback_byte(token)) {
      bytes += *byte;
      continue;
    }
    if (!bytes.empty()) {
      flush();
    }
    out.push_back(std::move(token));
  }
  if (!bytes.empty()) {
    flush();
  }
  return out;
}

SUPEROFFLOAD_INLINE token_list decoded(fuse_decoding, token_list const& tokens) { return {joined(tokens)}; }

SUPEROFFLOAD_INLINE token_list decoded(replace_decoding const& step, token_list tokens) {
  for (auto& token : tokens) { token = replaced(token, step.pattern, step.content); }
  return tokens;
}

SUPEROFFLOAD_INLINE token_list decoded(strip_decoding const& step, token_list tokens) {
  for (auto& token : tokens) {
    std::string_view rest = token;
    for (std::size_t i = 0; i < step.start && rest.starts_with(step.character); ++i) {
      rest.remove_prefix(step.character.size());
    }
    for (std::size_t i = 0; i < step.stop && rest.ends_with(step.character); ++i) {
      rest.remove_suffix(step.character.size());
    }
    token = std::string{rest};
  }
  return tokens;
}

SUPEROFFLOAD_INLINE token_list decoded(metaspace_decoding const& step, token_list tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = replaced(tokens[i], step.replacement, i == 0 && step.prepended ? "" : " ");
  }
  return tokens;
}

SUPEROFFLOAD_INLINE token_list decoded(suffix_decoding const& step, token_list tokens) {
  for (std::size_t i = 0; i < tokens.size() && !step.suffix.empty(); ++i) {
    tokens[i] = replaced(tokens[i], step.suffix, i + 1 == tokens.size() ? "" : " ");
  }
  return tokens;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string token_decoder::operator()(std::vector<std::string> tokens) const {
  for (auto const& step : steps_) {
    tokens = std::visit([&](auto const& one) { return detail::decoded(one, std::move(tokens)); }, step);
  }
  return detail::joined(tokens, joins_ ? " " : "");
}

}  // namespace superoffload::text
