// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/data/label_tokens.hpp>
#include <superoffload/text/token_range.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace superoffload::data {

using text::token_range;

/// A tokenized row. A view into its example_set.
struct example {
  std::span<std::int32_t const> tokens;  ///< ids
  std::span<token_range const> learnt;   ///< the tokens that are targets; ascending, none empty

  /// The number of tokens.
  [[nodiscard]] std::int64_t length() const noexcept { return static_cast<std::int64_t>(tokens.size()); }
  /// How many tokens are a target. The first never is: no token precedes it.
  [[nodiscard]] std::int64_t label_tokens() const noexcept { return data::label_tokens(learnt); }
};

/// Many examples in one flat array: 4 bytes a token, 16 bytes a row and 8 bytes a learnt range.
class example_set {
public:
  /// `learnt`: ascending, disjoint, within the tokens. Empty ranges are left out. \throws error(bad_input)
  /// otherwise
  void add(std::span<std::int32_t const> tokens, std::span<token_range const> learnt) {
    std::int32_t free = 0;
    for (auto const& part : learnt) {
      expect(free <= part.begin && part.begin <= part.end && part.end <= std::ssize(tokens),
             exit_code::bad_input, "an example of ", tokens.size(), " tokens learns ", part.begin, " to ",
             part.end, "; expected ascending ranges of its tokens");
      free = part.end;
    }
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    ends_.push_back(tokens_.size());
    for (auto const& part : learnt) {
      if (part.begin < part.end) {
        learnt_.push_back(part);
      }
    }
    learnt_ends_.push_back(learnt_.size());
  }
  /// All is learnt but the first `masked` tokens, the prompt, which may be longer than a row that was cut.
  void add(std::span<std::int32_t const> tokens, std::int32_t masked) {
    auto const size = static_cast<std::int32_t>(tokens.size());
    token_range const rest{std::min(masked, size), size};
    add(tokens, {&rest, 1});
  }
  /// Appends the examples of another set.
  void append(example_set const& other) {
    for (std::int64_t row = 0; row < other.size(); ++row) { add(other[row].tokens, other[row].learnt); }
  }

  /// The number of rows.
  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(ends_.size()); }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }  ///< has it no rows?
  /// Valid until the next change. `row` is in [0, size()).
  [[nodiscard]] example operator[](std::int64_t row) const noexcept {
    auto const at = static_cast<std::size_t>(row);
    auto const part = [at](auto const& all, std::vector<std::size_t> const& ends) {
      std::size_t const begin = at == 0 ? 0 : ends[at - 1];
      return std::span{all}.subspan(begin, ends[at] - begin);
    };
    return {part(tokens_, ends_), part(learnt_, learnt_ends_)};
  }

  /// The tokens of all rows together.
  [[nodiscard]] std::int64_t tokens() const noexcept { return static_cast<std::int64_t>(tokens_.size()); }
  /// Rows without a target: their prompt alone fills them.
  [[nodiscard]] std::int64_t rows_without_labels() const noexcept {
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < size(); ++row) { count += (*this)[row].label_tokens() == 0; }
    return count;
  }
  /// The tokens of the longest row; 0 for an empty set.
  [[nodiscard]] std::int64_t longest() const noexcept {
    std::int64_t length = 0;
    for (std::int64_t row = 0; row < size(); ++row) { length = std::max(length, (*this)[row].length()); }
    return length;
  }
  /// The largest token id, -1 when there is none: the model's vocabulary must be larger.
  [[nodiscard]] std::int32_t largest_id() const noexcept {
    return tokens_.empty() ? -1 : *std::max_element(tokens_.begin(), tokens_.end());
  }

private:
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> ends_;  ///< the end of each row in tokens_
  std::vector<token_range> learnt_;
  std::vector<std::size_t> learnt_ends_;  ///< the end of each row in learnt_
};

}  // namespace superoffload::data
