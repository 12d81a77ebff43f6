// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/share_out.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::data {
namespace detail {

struct shared_row {
  std::size_t place;  ///< among the rows of the step
  std::int64_t row;
  std::int64_t tokens;
  double cost;
};

/// Rows that one rank computes as one micro-batch.
struct part {
  std::vector<shared_row> rows;
  std::int64_t tokens = 0;
  double cost = 0.0;

  void add(shared_row const& row) {
    rows.push_back(row);
    tokens += row.tokens;
    cost += row.cost;
  }
  void remove(std::size_t index) {
    tokens -= rows[index].tokens;
    cost -= rows[index].cost;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(index));
  }
};

/// Deals whole sequences, the costliest first, each to the part of the least cost that has room.
SUPEROFFLOAD_INLINE std::vector<part> dealt(std::vector<part> sequences, std::size_t parts,
                                            std::int64_t most_tokens) {
  std::ranges::stable_sort(sequences, [](part const& a, part const& b) { return a.cost > b.cost; });
  std::vector<part> all(parts);
  std::set<std::pair<double, std::size_t>> by_cost;
  for (std::size_t i = 0; i < parts; ++i) { by_cost.insert({0.0, i}); }
  for (auto const& sequence : sequences) {
    auto const found = std::ranges::find_if(by_cost, [&](auto const& entry) {
      return all[entry.second].tokens + sequence.tokens <= most_tokens;
    });
    expect(found != by_cost.end(), exit_code::internal, "a step's sequences do not fit into ", parts,
           " parts of ", most_tokens, " tokens");
    auto const index = found->second;
    by_cost.erase(found);
    for (auto const& row : sequence.rows) { all[index].add(row); }
    by_cost.insert({all[index].cost, index});
  }
  return all;
}

/// Moves a row from `heavy` to `light`, or exchanges two, as brings their costs closest together. \returns
/// whether something does by more than rounding.
SUPEROFFLOAD_INLINE bool brought_closer(part& heavy, part& light, std::int64_t most_tokens) {
  constexpr std::size_t most_tried = 256;
  auto const difference = heavy.cost - light.cost;
  auto best = difference * (1.0 - 1e-3);
  std::size_t give = 0, take = 0;
  bool found = false;
  auto const others = std::min(light.rows.size(), most_tried);
  for (std::size_t i = 0; i < std::min(heavy.rows.size(), most_tried); ++i) {
    for (std::size_t j = 0; j <= others; ++j) {  // the last: takes nothing
      auto const back = j < others ? light.rows[j] : shared_row{};
      auto const remaining = std::abs(difference - 2.0 * (heavy.rows[i].cost - back.cost));
      auto const tokens = heavy.rows[i].tokens - back.tokens;
      if (remaining < best && light.tokens + tokens <= most_tokens && heavy.tokens - tokens <= most_tokens) {
        best = remaining;
        give = i;
        take = j;
        found = true;
      }
    }
  }
  if (found) {
    auto const given = heavy.rows[give];
    heavy.remove(give);
    if (take < others) {
      auto const taken = light.rows[take];
      light.remove(take);
      heavy.add(taken);
    }
    light.add(given);
  }
  return found;
}

/// Levels the costs, until the costliest part can give nothing to one of the cheapest.
SUPEROFFLOAD_INLINE void level(std::vector<part>& parts, std::int64_t most_tokens) {
  constexpr double close = 2e-3;
  constexpr std::size_t receivers = 4;
  for (std::size_t round = 0; round < 8 * parts.size() + 32; ++round) {
    std::ranges::stable_sort(parts, [](part const& a, part const& b) { return a.cost < b.cost; });
    auto& heaviest = parts.back();
    bool better = false;
    for (std::size_t i = 0; !better && i < std::min(receivers, parts.size() - 1); ++i) {
      better = heaviest.cost - parts[i].cost > close * heaviest.cost &&
               brought_closer(heaviest, parts[i], most_tokens);
    }
    if (!better) {
      return;
    }
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::vector<std::vector<std::int64_t>> share_out(example_set const& examples,
                                                                     std::span<sequence const> sequences,
                                                                     std::int64_t parts,
                                                                     std::int64_t most_tokens,
                                                                     document_cost const& cost) {
  std::vector<detail::part> all;
  all.reserve(sequences.size());
  std::size_t rows = 0;
  for (auto const& rows_of_sequence : sequences) {
    all.emplace_back();
    for (auto const row : rows_of_sequence) {
      auto const length = examples[row].length();
      all.back().add({rows++, row, length, cost(length)});
    }
  }
  all = detail::dealt(std::move(all), std::min(static_cast<std::size_t>(parts), rows), most_tokens);
  if (all.size() > 1) {
    detail::level(all, most_tokens);
  }
  std::ranges::stable_sort(all, [](auto const& a, auto const& b) { return a.cost > b.cost; });
  std::vector<std::vector<std::int64_t>> shared;
  shared.reserve(all.size());
  for (auto& part : all) {
    std::ranges::sort(part.rows, {}, &detail::shared_row::place);
    shared.emplace_back();
    for (auto const& row : part.rows) { shared.back().push_back(row.row); }
  }
  return shared;
}

}  // namespace superoffload::data
