// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/text/charsmap.hpp>
#include <superoffload/text/derived_text.hpp>
#include <superoffload/text/normalization.hpp>
#include <superoffload/text/regular_expression.hpp>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace superoffload::text {

// The steps of a normalizer, as tokenizer.json names them.

struct lowercase_step {};  ///< each character in lower case, without its context
/// The step Strip.
struct strip_step {
  bool left = true;   ///< removes white space at the begin
  bool right = true;  ///< ... and at the end
};
/// The step Prepend.
struct prepend_step {
  std::string prefix;  ///< put before a text that is not empty
};
/// The step Replace.
struct replace_step {
  regular_expression pattern;  ///< what is replaced
  std::string content;         ///< replaces each match, as it is
};
struct strip_accents_step {};  ///< without the marks that Unicode 9.0 has
struct nmt_step {};      ///< without some control characters; other ones, and special spaces, are spaces
struct letters_step {};  ///< each byte becomes its letter of byte_alphabet.hpp: the step ByteLevel
/// The step Precompiled.
struct precompiled_step {
  charsmap rules;  ///< for grapheme clusters of less than six bytes, and for characters of others
};

/// One step.
using normalizer_step =
    std::variant<normalization_form, lowercase_step, strip_step, prepend_step, replace_step,
                 strip_accents_step, nmt_step, letters_step, precompiled_step>;

/// Changes a text before it is cut into pieces.
class normalizer {
public:
  normalizer() = default;                                                                ///< changes nothing
  explicit normalizer(std::vector<normalizer_step> steps) : steps_{std::move(steps)} {}  ///< in this order

  /// `text` (valid UTF-8) after all steps. Thread-safe. \throws error(bad_input) as regular_expression does
  [[nodiscard]] derived_text operator()(std::string_view text, bool traced) const;

  /// The same without origins.
  [[nodiscard]] std::string operator()(std::string_view text) const {
    return std::string{operator()(text, false).text()};
  }

  /// Whether a text gets a prefix.
  [[nodiscard]] bool prepends() const noexcept;

private:
  std::vector<normalizer_step> steps_;
};

/// An expression that matches `text` alone, which must not be empty.
regular_expression literal_expression(std::string_view text, std::string_view where);

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/normalizer_inl.hpp>
#endif
