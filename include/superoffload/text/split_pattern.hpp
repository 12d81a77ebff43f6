// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace superoffload::text {

/// Cuts text into the pieces that byte pairs are merged within. A pattern from a file is never run: it must
/// be one of those published with the supported model families, of which this library has a scanner,
/// linear in the text. Character classes are those of one Unicode version, whatever the system has.
class split_pattern {
public:
  /// \throws error(bad_input) unless `published` is, letter by letter, a known pattern; `where` leads the
  /// message.
  split_pattern(std::string_view published, std::string_view where);

  /// The pieces of `text` in order; together they are the text. Bytes that are not valid UTF-8 are
  /// cut as symbols are. Thread-safe.
  [[nodiscard]] std::vector<std::string_view> operator()(std::string_view text) const;

  struct form;

private:
  form const* form_;
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/split_pattern_inl.hpp>
#endif
