// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

/// A token that is searched for in the text as a whole, before byte-pair encoding.
struct added_token {
  std::string content;       ///< its text, in UTF-8, not empty
  std::int32_t id = 0;       ///< which its text becomes
  bool single_word = false;  ///< only without a word character next to it
  bool lstrip = false;       ///< includes the white space before it
  bool rstrip = false;       ///< includes the white space after it
  bool normalized = false;   ///< searched for after normalisation, in its own normalised form
  bool special = false;      ///< omitted when decoding without special tokens
};

/// A piece of text: an added token, or (id < 0) ordinary text between two.
struct stretch {
  std::string_view text;  ///< a view into the text that was cut
  std::int32_t id = -1;   ///< of the added token; -1: ordinary text
};

/// Finds added tokens: the leftmost first, and of those the longest.
class added_token_finder {
public:
  /// No content may be empty; of equal contents the lowest id counts. A search takes time proportional to the
  /// length of the text times that of the longest token.
  explicit added_token_finder(std::vector<added_token> tokens);

  /// `text` (valid UTF-8) cut at the tokens. Thread-safe.
  [[nodiscard]] std::vector<stretch> operator()(std::string_view text) const;

private:
  [[nodiscard]] added_token const* longest_at_front(std::string_view text) const;

  std::vector<added_token> tokens_;  // sorted by content
  std::array<bool, 256> begins_{};   // by first byte
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/added_tokens_inl.hpp>
#endif
