// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/row_notes.hpp>

namespace superoffload::data {

SUPEROFFLOAD_INLINE void row_notes::found_rows::add(std::string const& origin) {
  if (count++ == 0) {
    first = origin;
  }
}

SUPEROFFLOAD_INLINE void row_notes::add(row const& read, encoded_row const& one) {
  ++rows_;
  if (one.label_tokens() == 0) {
    (one.was_cut() ? cut_to_nothing_ : nothing_).add(read.origin);
  }
  if (one.learnt_at_zero > 0) {
    at_zero_.add(read.origin);
  }
}

SUPEROFFLOAD_INLINE void row_notes::expect_labels(std::int64_t max_length) const {
  if (rows_ == 0 || cut_to_nothing_.count + nothing_.count < rows_) {
    return;
  }
  expect(cut_to_nothing_.count > 0, exit_code::bad_input, nothing_.first, ": nothing is learnt in this row",
         rows_ > 1 ? concat(", nor in the other ", rows_ - 1) : "",
         "; expected an answer: a message of the assistant, an output, or labels other than -100");
  fail(exit_code::bad_input, "max_length: ", max_length, " leaves none of the ", rows_,
       " rows a label: the prompts fill them; expected a larger max_length, or label_mask none");
}

SUPEROFFLOAD_INLINE std::vector<std::string> row_notes::lines() const {
  std::vector<std::string> lines;
  auto const tell = [&](found_rows const& found, auto const&... words) {
    if (found.count > 0) {
      lines.push_back(concat(found.first, ": ", words...,
                             found.count > 1 ? concat("; the first of ", found.count, " such rows") : ""));
    }
  };
  tell(nothing_, "nothing is learnt in this row");
  tell(cut_to_nothing_, "the row is cut before what is learnt in it");
  tell(at_zero_, "a turn of weight 0 is learnt; --learn weighted leaves it out");
  return lines;
}

}  // namespace superoffload::data
