// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/text/derived_text.hpp>
#include <superoffload/text/regular_expression.hpp>
#include <superoffload/text/split_pattern.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace superoffload::text {

/// What becomes of the matches of a pattern that cuts a text.
enum class split_behavior : std::uint8_t {
  isolated,              ///< each is a piece
  removed,               ///< none is in a piece
  merged_with_previous,  ///< each is the end of the piece before it
  merged_with_next,      ///< each is the begin of the piece behind it
  contiguous,            ///< matches in a row are one piece
};

/// Characters that have a name in tokenizer.json.
enum class split_class : std::uint8_t {
  digit,        ///< of the step Digits: decimal digits, and other characters for numbers
  punctuation,  ///< of the step Punctuation
  white_space,  ///< of the step WhitespaceSplit
  word_run,     ///< runs of `\w`, and runs of what is neither that nor white space, of the step Whitespace
};

/// The step Split, and those that are one with a pattern of their own: Digits, Punctuation, Whitespace.
struct split_step {
  std::variant<split_pattern, regular_expression, split_class> pattern;  ///< what cuts
  split_behavior behavior = split_behavior::isolated;                    ///< what becomes of it
  bool invert = false;  ///< what lies between matches counts as the matches
};
/// The step Metaspace.
struct metaspace_step {
  /// Which pieces get a replacement at their begin.
  enum class prepend : std::uint8_t { always, first, never };
  std::string replacement;  ///< of each space
  prepend scheme =
      prepend::always;  ///< whether a piece gets it at its begin; first: at the begin of the text
  bool split = true;    ///< a piece begins with each of them
};
struct prefix_space_step {};   ///< each piece begins with a space
struct byte_alphabet_step {};  ///< each byte becomes its letter of byte_alphabet.hpp

/// One step.
using pre_tokenizer_step = std::variant<split_step, metaspace_step, prefix_space_step, byte_alphabet_step>;

/// Cuts a normalised text into the pieces that byte-pair encoding gets.
class pre_tokenizer {
public:
  pre_tokenizer() = default;  ///< a text is one piece
  /// \param steps in this order \param byte_level whether the pieces are bytes that the vocabulary spells
  /// (byte_alphabet.hpp); otherwise they are text
  pre_tokenizer(std::vector<pre_tokenizer_step> steps, bool byte_level)
      : steps_{std::move(steps)}, byte_level_{byte_level} {}

  /// Cuts `text`, which it may change on the way. The pieces are none of them empty. `begin`: where the text
  /// lies in the whole one, of which some steps care for the begin. Thread-safe.
  [[nodiscard]] std::vector<byte_range> operator()(derived_text& text, std::size_t begin) const;

  /// The pieces of a whole text.
  [[nodiscard]] std::vector<std::string> pieces(std::string_view text) const;

  [[nodiscard]] bool byte_level() const noexcept { return byte_level_; }  ///< as it was made
  [[nodiscard]] bool needs_origins() const noexcept;  ///< whether it wants a text that is traced
  [[nodiscard]] bool prepends() const noexcept;       ///< whether a text may get a prefix

private:
  std::vector<pre_tokenizer_step> steps_;
  bool byte_level_ = false;
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/pre_tokenizer_inl.hpp>
#endif
