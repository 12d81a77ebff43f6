// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/text/utf8.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace superoffload::text {

/// Vocabulary files write a token's bytes as printable characters: a printable Latin-1 byte stands for
/// itself; the other 68, in increasing order, become U+0100, U+0101, ... (a space is U+0120).
inline constexpr std::array<char32_t, 256> byte_alphabet = [] {
  std::array<char32_t, 256> letters{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    bool const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    letters[byte] = printable ? byte : next++;
  }
  return letters;
}();

/// `bytes` in the alphabet.
inline std::string to_byte_alphabet(std::string_view bytes) {
  std::string letters;
  for (char const byte : bytes) { append_utf8(letters, byte_alphabet[static_cast<unsigned char>(byte)]); }
  return letters;
}

/// The bytes that `letters` stand for; nothing when a character is not in the alphabet.
inline std::optional<std::string> from_byte_alphabet(std::string_view letters) {
  static constexpr auto bytes = [] {
    std::array<std::int16_t, 0x100 + 68> table{};
    table.fill(-1);
    for (std::size_t byte = 0; byte < 256; ++byte) {
      table[byte_alphabet[byte]] = static_cast<std::int16_t>(byte);
    }
    return table;
  }();
  std::string out;
  while (!letters.empty()) {
    auto const step = first_step(letters);
    if (!step.valid || step.code_point >= bytes.size() || bytes[step.code_point] < 0) {
      return std::nullopt;
    }
    out += static_cast<char>(bytes[step.code_point]);
    letters.remove_prefix(step.length);
  }
  return out;
}

}  // namespace superoffload::text
