// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/narrow_words.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace superoffload::io {
namespace detail {

static_assert(std::endian::native == std::endian::little);

inline std::uint32_t word_at(std::byte const* words, std::size_t i) {
  std::uint32_t word = 0;
  std::memcpy(&word, words + 4 * i, sizeof word);
  return word;
}

}  // namespace detail

SUPEROFFLOAD_INLINE int kept_bytes_of_words(std::span<std::byte const> data) {
  if (data.size() % 4 != 0) {
    return 4;
  }
  // Most words of full precision show it soon.
  constexpr std::size_t piece = 4096;
  std::uint32_t seen = 0;
  for (std::size_t begin = 0; begin < data.size() && (seen & 0xFFU) == 0; begin += piece) {
    auto const words = std::min(piece, data.size() - begin) / 4;
    for (std::size_t i = 0; i < words; ++i) { seen |= detail::word_at(data.data() + begin, i); }
  }
  return (seen & 0xFFU) != 0 ? 4 : (seen & 0xFF00U) != 0 ? 3 : seen != 0 ? 2 : 0;
}

SUPEROFFLOAD_INLINE void narrow_words(std::span<std::byte const> words, int kept,
                                      std::span<std::byte> narrow) {
  if (kept == 4) {
    std::ranges::copy(words, narrow.begin());
    return;
  }
  auto const high_count = kept >= 2 ? words.size() / 4 : 0, low_count = kept == 3 ? high_count : 0;
  for (std::size_t i = 0; i < high_count; ++i) {
    auto const high = static_cast<std::uint16_t>(detail::word_at(words.data(), i) >> 16);
    std::memcpy(narrow.data() + 2 * i, &high, sizeof high);
  }
  auto const low = narrow.subspan(2 * high_count);
  for (std::size_t i = 0; i < low_count; ++i) { low[i] = words[4 * i + 1]; }
}

SUPEROFFLOAD_INLINE void widen_words(std::span<std::byte const> narrow, int kept,
                                     std::span<std::byte> words) {
  auto const count = words.size() / 4;
  auto const widen = [&](auto third) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t high = 0;
      std::memcpy(&high, narrow.data() + 2 * i, sizeof high);
      std::uint32_t const word = std::uint32_t{high} << 16 | third(i) << 8;
      std::memcpy(words.data() + 4 * i, &word, sizeof word);
    }
  };
  if (kept == 4) {
    std::ranges::copy(narrow, words.begin());
  } else if (kept == 3) {
    widen(
        [low = narrow.data() + 2 * count](std::size_t i) { return std::to_integer<std::uint32_t>(low[i]); });
  } else if (kept == 2) {
    widen([](std::size_t) { return 0U; });
  } else {
    std::ranges::fill(words, std::byte{0});
  }
}

}  // namespace superoffload::io
