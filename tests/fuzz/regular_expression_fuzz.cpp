// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/regular_expression.hpp>

#include "fuzz.hpp"

using namespace superoffload;

/// A pattern, and after the first zero byte a text, which is cut as well as one of many equal characters.
int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const input = fuzz::text_of(data, size);
  auto const pattern = input.substr(0, input.find('\0'));
  auto const text = input.substr(std::min(input.size(), pattern.size() + 1));
  fuzz::expect_refusal_at_most([&] {
    text::regular_expression const expression{pattern, "input"};
    static std::string const equal(300, 'a');
    // Patterns that need many steps do the same steps over and over.
    text::step_limit const limit{.base = 1000, .per_byte = 10};
    for (std::string_view const cut : {text, std::string_view{equal}}) {
      std::size_t end = 0;
      for (auto const& match : expression.matches(cut, limit)) {
        fuzz::require(end <= match.begin && match.begin <= match.end && match.end <= cut.size(),
                      "matches are in order, inside of the text");
        fuzz::require(match.begin < match.end || expression.may_be_empty(), "few patterns match nothing");
        end = match.end;
      }
    }
  });
  return 0;
}
