// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/data/example_set.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace superoffload::data {

/// Cuts `order` (rows of `examples`) into sequences of at most `max_length` tokens: a row joins the current
/// sequence if it fits, else it begins a new one. Linear in the rows. Returns [sequences + 1]: where in
/// `order` each sequence begins; the last entry is the number of rows.
inline std::vector<std::int64_t> pack(example_set const& examples, std::span<std::int64_t const> order,
                                      std::int64_t max_length) {
  std::vector<std::int64_t> starts;
  std::int64_t used = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto const length = examples[order[i]].length();
    expect(length <= max_length, exit_code::internal, "packing: row ", order[i], " has ", length,
           " tokens; expected at most max_length = ", max_length);
    if (starts.empty() || used + length > max_length) {
      starts.push_back(static_cast<std::int64_t>(i));
      used = 0;
    }
    used += length;
  }
  starts.push_back(static_cast<std::int64_t>(order.size()));
  return starts;
}

}  // namespace superoffload::data
