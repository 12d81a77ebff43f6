// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/mixture.hpp>
#include <superoffload/data/shuffle.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace superoffload::data {

SUPEROFFLOAD_INLINE std::vector<std::int64_t> shares_of(mixture const& sets) {
  auto const total = std::accumulate(sets.rows.begin(), sets.rows.end(), std::int64_t{0});
  auto const weight = std::accumulate(sets.weights.begin(), sets.weights.end(), 0.0);
  std::vector<std::int64_t> shares;
  std::vector<std::pair<double, std::size_t>> remainders;
  for (std::size_t i = 0; i < sets.rows.size(); ++i) {
    auto const exact = static_cast<double>(total) * (sets.weights[i] / weight);
    shares.push_back(static_cast<std::int64_t>(exact));
    remainders.emplace_back(exact - std::floor(exact), i);
  }
  std::ranges::stable_sort(remainders, [](auto const& a, auto const& b) { return a.first > b.first; });
  auto left = total - std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left) {
    ++shares[remainders[i].second];
  }
  return shares;
}

SUPEROFFLOAD_INLINE std::vector<std::int64_t> mixed_rows(mixture const& sets, std::uint64_t seed,
                                                         std::int64_t epoch) {
  auto const shares = shares_of(sets);
  std::vector<std::int64_t> chosen;
  std::int64_t first = 0;  // the set's first row
  for (std::size_t i = 0; i < shares.size(); ++i) {
    auto const rows = sets.rows[i];
    // Each set has its own stream of random numbers, apart from that of the epoch's order.
    auto const stream = random_bits(seed, ~std::uint64_t{0}, i);
    std::vector<std::int64_t> order;
    for (auto at = epoch * shares[i]; at < (epoch + 1) * shares[i]; ++at) {
      if (order.empty() || at % rows == 0) {
        order = shuffled_rows(rows, stream, at / rows);
      }
      chosen.push_back(first + order[static_cast<std::size_t>(at % rows)]);
    }
    first += rows;
  }
  std::vector<std::int64_t> mixed;
  mixed.reserve(chosen.size());
  for (auto const place : shuffled_rows(static_cast<std::int64_t>(chosen.size()), seed, epoch)) {
    mixed.push_back(chosen[static_cast<std::size_t>(place)]);
  }
  return mixed;
}

}  // namespace superoffload::data
