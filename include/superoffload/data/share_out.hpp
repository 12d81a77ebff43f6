// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/collate.hpp>
#include <superoffload/data/example_set.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace superoffload::data {

/// The work of training on a document, in any unit: attention takes its part for the square of the length.
struct document_cost {
  double of_token = 1.0;   ///< times the length
  double of_square = 0.0;  ///< times its square

  /// The cost of a document of `length` tokens.
  [[nodiscard]] double operator()(std::int64_t length) const noexcept {
    auto const tokens = static_cast<double>(length);
    return of_token * tokens + of_square * tokens * tokens;
  }
};

/// Tokens of the largest part that share_out() may have to make of a step of `sequences` sequences of up to
/// `max_length` tokens.
constexpr std::int64_t most_tokens_of_part(std::int64_t sequences, std::int64_t max_length,
                                           std::int64_t parts) {
  return (sequences - 1) / parts * max_length + max_length;
}

/// The same for a step of up to `tokens` tokens in any number of sequences.
constexpr std::int64_t most_tokens_of_part_within(std::int64_t tokens, std::int64_t max_length,
                                                  std::int64_t parts) {
  parts = std::min(parts, tokens);
  return std::min(tokens, (tokens + (parts - 1) * max_length + parts - 1) / parts);
}

/// Shares the rows of a step out to `parts` parts of nearly equal cost and at most `most_tokens` tokens. The
/// costliest part comes first; rows keep their order. Rows of a sequence may come into different parts, since
/// they do not attend to each other. There are no more parts than rows, so fewer than `parts` may come back.
/// `most_tokens` must be such that whole sequences fit, dealt in any order.
std::vector<std::vector<std::int64_t>> share_out(example_set const& examples,
                                                 std::span<sequence const> sequences, std::int64_t parts,
                                                 std::int64_t most_tokens, document_cost const& cost);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/share_out_inl.hpp>
#endif
