// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace superoffload::data {

/// The `index`-th number of the random stream of (seed, epoch): SplitMix64 (Steele, Lea, Flood 2014) from a
/// mix of seed and epoch. Counter-based: the same on every platform and in every order of calls.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index) {
  auto const mixed = [](std::uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  };
  return mixed(mixed(mixed(seed) + epoch) + index * 0x9E3779B97F4A7C15U);
}

/// The rows 0 .. rows-1 in the order of an epoch: a Fisher-Yates shuffle from the last position to the
/// second, which swaps position i with position random_bits(seed, epoch, i) modulo (i + 1). (The bias of the
/// modulo is less than rows / 2^64.)
std::vector<std::int64_t> shuffled_rows(std::int64_t rows, std::uint64_t seed, std::int64_t epoch);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/shuffle_inl.hpp>
#endif
