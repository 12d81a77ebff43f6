// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace superoffload::text {

/// Cuts text into the pieces inside which byte pairs are merged, as one of the patterns does that are
/// published with frequent model families. For these the library has a scanner, linear in the text. Others
/// are a regular_expression. Character classes are those of one Unicode version, on every system.
class split_pattern {
public:
  /// Whether `published` is, character by character, a known pattern.
  [[nodiscard]] static bool knows(std::string_view published) noexcept;

  /// \throws error(bad_input) unless `published` is, character by character, a known pattern; the message
  /// begins with `where`.
  split_pattern(std::string_view published, std::string_view where);

  /// The pieces of `text` in order; joined, they are the text. Bytes that are not valid UTF-8 are cut like
  /// symbols. Thread-safe.
  [[nodiscard]] std::vector<std::string_view> operator()(std::string_view text) const;

  struct form;

private:
  form const* form_;
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/split_pattern_inl.hpp>
#endif
