// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::data {
namespace detail {

SUPEROFFLOAD_INLINE std::int64_t packable_length(example_set const& examples, std::int64_t row,
                                                 std::int64_t max_length) {
  auto const length = examples[row].length();
  expect(length <= max_length, exit_code::internal, "packing: row ", row, " has ", length,
         " tokens; expected at most max_length = ", max_length);
  return length;
}

/// Packs `rows` by best fit decreasing and appends the sequences. A sequence comes at the place of its
/// longest row, so that their order is as random as that of the rows; its rows keep their order.
SUPEROFFLOAD_INLINE void pack_window(example_set const& examples, std::span<std::int64_t const> rows,
                                     std::int64_t max_length, packed_rows& to) {
  std::vector<std::int64_t> lengths;
  std::vector<std::size_t> longest_first(rows.size());
  lengths.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    lengths.push_back(packable_length(examples, rows[i], max_length));
    longest_first[i] = i;
  }
  std::ranges::stable_sort(longest_first,
                           [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::size_t>> sequences;
  std::set<std::pair<std::int64_t, std::size_t>> rooms;  // what is left, and of which sequence
  for (auto const row : longest_first) {
    auto const length = lengths[row];
    auto const best = rooms.lower_bound({length, 0});
    auto const left = (best == rooms.end() ? max_length : best->first) - length;
    auto const index = best == rooms.end() ? sequences.size() : best->second;
    if (best == rooms.end()) {
      sequences.emplace_back();
    } else {
      rooms.erase(best);
    }
    sequences[index].push_back(row);
    rooms.insert({left, index});
  }
  std::ranges::sort(sequences, {}, [](auto const& sequence) { return sequence.front(); });
  for (auto& sequence : sequences) {
    std::ranges::sort(sequence);
    to.starts.push_back(static_cast<std::int64_t>(to.order.size()));
    for (auto const row : sequence) { to.order.push_back(rows[row]); }
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE packed_rows pack(example_set const& examples, std::span<std::int64_t const> order,
                                     std::int64_t max_length, std::size_t window) {
  packed_rows packed;
  packed.order.reserve(order.size());
  for (std::size_t begin = 0; begin < order.size(); begin += window) {
    detail::pack_window(examples, order.subspan(begin, std::min(window, order.size() - begin)), max_length,
                        packed);
  }
  packed.starts.push_back(static_cast<std::int64_t>(packed.order.size()));
  return packed;
}

SUPEROFFLOAD_INLINE packed_rows pack_in_order(example_set const& examples,
                                              std::span<std::int64_t const> order, std::int64_t max_length) {
  packed_rows packed{{order.begin(), order.end()}, {}};
  std::int64_t used = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto const length = detail::packable_length(examples, order[i], max_length);
    if (packed.starts.empty() || used + length > max_length) {
      packed.starts.push_back(static_cast<std::int64_t>(i));
      used = 0;
    }
    used += length;
  }
  packed.starts.push_back(static_cast<std::int64_t>(order.size()));
  return packed;
}

}  // namespace superoffload::data
