// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>
#include <superoffload/data/row_encoder.hpp>
#include <superoffload/data/row_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Lengths of rows, how much of them is learnt, and what a fine-tuner would do with them.
class statistics {
public:
  explicit statistics(std::int64_t max_length) : max_length_{max_length} {}

  void add(superoffload::data::row const& read, superoffload::data::encoded_row const& encoded);

  [[nodiscard]] std::string text() const;

private:
  /// Rows of a kind, and where the first of them are.
  struct found_rows {
    std::size_t count = 0;
    std::string first;
    void add(std::string const& origin);
    [[nodiscard]] std::string text() const;
  };

  [[nodiscard]] std::string histogram() const;
  [[nodiscard]] std::string packed() const;

  std::int64_t max_length_;
  superoffload::data::example_set rows_;  ///< for their lengths
  std::int64_t learnt_ = 0;
  std::int64_t cut_tokens_ = 0;
  found_rows cut_, without_labels_;
};
