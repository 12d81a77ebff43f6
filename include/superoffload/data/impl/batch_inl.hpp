// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/batch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::data {

SUPEROFFLOAD_INLINE void expect_valid(batch const& b, std::int64_t vocabulary, std::int64_t positions) {
  auto const sizes = [&](char const* field, std::vector<std::int32_t> const& values) {
    expect(values.size() == b.tokens.size(), exit_code::bad_input, "data::batch::", field, " has ",
           values.size(), " entries for ", b.tokens.size(), " tokens, expected one for each");
  };
  auto const range = [&](char const* field, std::vector<std::int32_t> const& values, std::int32_t first,
                         std::int64_t end) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      expect(values[i] >= first && values[i] < end, exit_code::bad_input, "data::batch::", field, "[", i,
             "] is ", values[i], ", expected ", first, " to ", end - 1);
    }
  };
  sizes("targets", b.targets);
  sizes("positions", b.positions);
  if (!b.padding.empty()) {
    sizes("padding", b.padding);
  }
  range("tokens", b.tokens, 0, vocabulary);
  range("targets", b.targets, -1, vocabulary);
  range("positions", b.positions, 0, positions);
  if (b.tokens.empty() && b.starts.empty()) {
    return;
  }
  expect(!b.starts.empty() && b.starts.front() == 0 && b.starts.back() == b.rows() &&
             std::is_sorted(b.starts.begin(), b.starts.end()),
         exit_code::bad_input, "data::batch::starts must rise from 0 to the ", b.rows(),
         " tokens: the first row of each document, and their end");
}

}  // namespace superoffload::data
