// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace superoffload::io {

// Words of four bytes without the low bytes that are zero in all of them. bfloat16 as float32 takes two bytes
// a word. The high two bytes of all words come first, then the third.

/// How many bytes of each word of `data` must be kept: 0, 2, 3 or 4. 4 if it is not a number of whole words.
int kept_bytes_of_words(std::span<std::byte const> data);

/// The size of `bytes` bytes of words of which so many bytes are kept.
constexpr std::size_t narrow_bytes(std::size_t bytes, int kept) {
  return kept == 4 ? bytes : bytes / 4 * static_cast<std::size_t>(kept);
}

/// Writes the words without their low bytes. `narrow` has narrow_bytes(words.size(), kept) bytes, elsewhere.
void narrow_words(std::span<std::byte const> words, int kept, std::span<std::byte> narrow);

/// Restores what narrow_words() wrote.
void widen_words(std::span<std::byte const> narrow, int kept, std::span<std::byte> words);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/narrow_words_inl.hpp>
#endif
