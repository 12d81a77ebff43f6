// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace superoffload::data {

/// Data sets with weights, one after the other in the examples. An epoch has as many rows as all of them
/// together, in fixed numbers of each that are proportional to the weights. So a set with a large weight
/// gives rows more than once in an epoch, and one with a small weight gives only some of them. Each set is
/// gone through in passes that are shuffled anew, one pass after the other over the epochs: no row comes a
/// second time before all others of its set have come once.
struct mixture {
  std::vector<std::int64_t> rows;  ///< of each set; empty: every row comes once an epoch
  std::vector<double> weights;     ///< of each set, above 0; only their ratios count

  [[nodiscard]] bool empty() const noexcept { return rows.empty(); }  ///< does every row come once an epoch?
};

/// How many rows of an epoch each set gives: by largest remainder, of equal remainders the first set's.
std::vector<std::int64_t> shares_of(mixture const& sets);

/// The rows of an epoch in their order: a function of the sets, seed and epoch alone.
std::vector<std::int64_t> mixed_rows(mixture const& sets, std::uint64_t seed, std::int64_t epoch);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/mixture_inl.hpp>
#endif
