// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/data/collate.hpp>
#include <superoffload/data/example_set.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::data {

/// The work of training on a document, in any unit: attention takes its part for the square of the length.
struct document_cost {
  double of_token = 1.0;   ///< times the length
  double of_square = 0.0;  ///< times its square

  /// The cost of a document of `length` tokens.
  [[nodiscard]] double operator()(std::int64_t length) const noexcept {
    auto const tokens = static_cast<double>(length);
    return of_token * tokens + of_square * tokens * tokens;
  }
};

/// Tokens of the largest part that share_out() may have to make of a step of `sequences` sequences of up to
/// `max_length` tokens.
constexpr std::int64_t most_tokens_of_part(std::int64_t sequences, std::int64_t max_length,
                                           std::int64_t parts) {
  return (sequences - 1) / parts * max_length + max_length;
}

/// The same for a step of up to `tokens` tokens in any number of sequences.
constexpr std::int64_t most_tokens_of_part_within(std::int64_t tokens, std::int64_t max_length,
                                                  std::int64_t parts) {
  parts = std::min(parts, tokens);
  return std::min(tokens, (tokens + (parts - 1) * max_length + parts - 1) / parts);
}

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
inline std::vector<part> dealt(std::vector<part> sequences, std::size_t parts, std::int64_t most_tokens) {
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
inline bool brought_closer(part& heavy, part& light, std::int64_t most_tokens) {
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
inline void level(std::vector<part>& parts, std::int64_t most_tokens) {
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

/// Shares the rows of a step out to `parts` parts of nearly equal cost and at most `most_tokens` tokens. The
/// costliest part comes first; rows keep their order. Rows of a sequence may come into different parts, since
/// they do not attend to each other. There are no more parts than rows, so fewer than `parts` may come back.
/// `most_tokens` must be such that whole sequences fit, dealt in any order.
inline std::vector<std::vector<std::int64_t>> share_out(example_set const& examples,
                                                        std::span<sequence const> sequences,
                                                        std::int64_t parts, std::int64_t most_tokens,
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
