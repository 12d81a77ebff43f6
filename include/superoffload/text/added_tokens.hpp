// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

/// A token that is found in the text as a whole, before byte pairs are looked at.
struct added_token {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  ///< only where no word character stands beside it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space after it along
  bool normalized = false;   ///< looked for after normalisation, in its own normalised form
  bool special = false;      ///< left out when decoding without special tokens
};

/// A stretch of text: an added token, or (id < 0) ordinary text between two.
struct stretch {
  std::string_view text;
  std::int32_t id = -1;
};

/// Finds added tokens: leftmost first and of those the longest.
class added_token_finder {
public:
  /// No content is empty; of equal contents the lowest id counts. Time of a search: the text times the
  /// longest of them.
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
