// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

/// Bytes of a text, from `begin` to before `end`.
struct byte_range {
  std::size_t begin = 0;  ///< the first byte
  std::size_t end = 0;    ///< behind the last byte

  /// Empty ranges at other places differ.
  friend constexpr bool operator==(byte_range, byte_range) = default;
};

/// How many steps it may take to find the matches in a text: `base`, and `per_byte` for each of its bytes.
struct step_limit {
  std::uint64_t base = 1'000'000;
  std::uint64_t per_byte = 1000;
};

/// A regular expression from a file, in the syntax of Oniguruma as Hugging Face tokenizers uses it. Supported
/// are classes with their unions and intersections, general categories, scripts, classes of POSIX,
/// alternatives, groups with and without a name, quantifiers (greedy, lazy, possessive), assertions before
/// and behind, anchors, and `(?i:`. A pattern is matched by backtracking on a stack of its own, within a
/// limit of steps.
class regular_expression {
public:
  /// \throws error(bad_input) that begins with `where` for what is not supported, and for a pattern of more
  /// than 64 KiB.
  regular_expression(std::string_view pattern, std::string_view where);

  /// The matches in order, none overlapping another; empty ones only where the one before does not end.
  /// Thread-safe. \throws error(bad_input) when the limit of steps is reached.
  [[nodiscard]] std::vector<byte_range> matches(std::string_view text, step_limit limit = {}) const;

  /// Whether it may match between two characters.
  [[nodiscard]] bool may_be_empty() const noexcept;

  struct program;

private:
  std::shared_ptr<program const> program_;
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/regular_expression_inl.hpp>
#endif
