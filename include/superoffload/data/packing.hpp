// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace superoffload::data {

/// Rows in sequences.
struct packed_rows {
  std::vector<std::int64_t> order;   ///< rows, sequence after sequence
  std::vector<std::int64_t> starts;  ///< [sequences + 1] where in `order` each sequence begins; last = rows
};

/// Rows that are packed together: enough that hardly a sequence has room left, few enough that a row stays
/// near its place in the shuffled order of a large data set.
inline constexpr std::size_t packing_window = 8192;

/// Puts the rows of each window of `order` into sequences of at most `max_length` tokens, by best fit
/// decreasing.
packed_rows pack(example_set const& examples, std::span<std::int64_t const> order, std::int64_t max_length,
                 std::size_t window = packing_window);

/// The same without changing the order: a row joins the current sequence if it fits, else it begins a new
/// one.
packed_rows pack_in_order(example_set const& examples, std::span<std::int64_t const> order,
                          std::int64_t max_length);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/packing_inl.hpp>
#endif
