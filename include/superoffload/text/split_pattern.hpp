// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace superoffload::text {

/// Cuts text into the pieces inside which byte pairs are merged. A pattern from a file is never executed: it
/// must be one of the patterns published with the supported model families. For these the library has a
/// scanner, linear in the text. Character classes are those of one Unicode version, on every system.
class split_pattern {
public:
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
