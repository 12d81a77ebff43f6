// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::data {

/// One micro-batch: its documents one after the other, `rows` tokens in all. Nothing needs to be padded; a
/// padded sequence is one document with its padding at the end. Attention never crosses a document's border.
struct batch {
  std::vector<std::int32_t> tokens;  ///< [rows] token ids
  std::vector<std::int32_t>
      targets;  ///< [rows] the id each row has to predict (labels already shifted), -1 = none
  std::vector<std::int32_t> positions;  ///< [rows] rotary position, from 0 in each document
  std::vector<std::int32_t> starts;     ///< [documents + 1] first row of each document, last entry = rows
  std::vector<std::int32_t> padding{};  ///< [rows] 1: padding, 0: a token of the data; empty: no padding

  std::uint64_t noise = 0;  ///< seed of dropout: a function of the position in the data

  /// Says that the rows from `first` on are padding, and that those before without a mark are none.
  void mark_padding(std::int64_t first) {
    if (first < rows() || !padding.empty()) {
      padding.resize(static_cast<std::size_t>(first), 0);
      padding.resize(tokens.size(), 1);
    }
  }
  /// Tokens, padding included.
  [[nodiscard]] std::int64_t rows() const noexcept { return static_cast<std::int64_t>(tokens.size()); }
  /// 0 if the batch has no rows.
  [[nodiscard]] std::int64_t documents() const noexcept {
    return starts.empty() ? 0 : static_cast<std::int64_t>(starts.size()) - 1;
  }
  /// How many rows have a target: this batch's share of the loss's divisor.
  [[nodiscard]] std::int64_t label_tokens() const noexcept {
    std::int64_t count = 0;
    for (auto const target : targets) { count += target >= 0; }
    return count;
  }
};

/// Throws `error` (bad_input) that names the field unless `b` is as its members' descriptions ask, its ids
/// are below `vocabulary` and its positions below `positions`.
void expect_valid(batch const& b, std::int64_t vocabulary, std::int64_t positions);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/batch_inl.hpp>
#endif
