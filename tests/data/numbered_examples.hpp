// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace superoffload::data::testing {

/// `rows` examples of lengths 1 .. longest in no order, every token id unique, `masked` from 0 to the length.
inline example_set numbered_examples(std::int64_t rows, std::int64_t longest) {
  example_set examples;
  std::int32_t id = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(1 + row * 7 % longest));
    for (auto& token : tokens) { token = id++; }
    examples.add(tokens, static_cast<std::int32_t>(row * 5 % static_cast<std::int64_t>(tokens.size() + 1)));
  }
  return examples;
}

inline example_set examples_of(std::initializer_list<std::vector<std::int32_t>> rows,
                               std::int32_t masked = 0) {
  example_set examples;
  for (auto const& tokens : rows) { examples.add(tokens, masked); }
  return examples;
}

/// How many tokens at the beginning are not learnt; all that follow are.
inline std::int64_t masked_prefix(example const& row) {
  auto const& learnt = row.learnt;
  bool const whole = learnt.size() == 1 && learnt[0].end == row.length();
  return learnt.empty() ? row.length() : whole ? learnt[0].begin : -1;
}

}  // namespace superoffload::data::testing
