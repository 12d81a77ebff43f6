// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/row_encoder.hpp>
#include <superoffload/data/row_reader.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace superoffload::data {

/// What a user should know of the rows of a data set before he trains with them.
class row_notes {
public:
  void add(row const& read, encoded_row const& one);

  /// \throws error(bad_input) if there are rows and none has a label. It says whether the rows themselves
  /// have nothing to learn, or `max_length` cuts it off.
  void expect_labels(std::int64_t max_length) const;

  /// One sentence for each finding, with the first row of its kind.
  [[nodiscard]] std::vector<std::string> lines() const;

private:
  /// Rows of a kind, and where the first of them is.
  struct found_rows {
    std::int64_t count = 0;
    std::string first = {};
    void add(std::string const& origin);
  };

  std::int64_t rows_ = 0;
  found_rows cut_to_nothing_;  ///< the cut took all that is learnt
  found_rows nothing_;         ///< the whole row has nothing to learn
  found_rows at_zero_;         ///< turns are learnt although the row gives them the weight 0
};

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/row_notes_inl.hpp>
#endif
