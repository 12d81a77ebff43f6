// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace superoffload::text {

/// One step through a byte string that may not be UTF-8: a code point, or the longest run of bytes that
/// begins like one and cannot be completed (the Unicode standard calls it a maximal subpart).
struct utf8_step {
  char32_t code_point;  ///< 0 if it is not valid
  std::size_t length;   ///< bytes, at least 1
  bool valid;           ///< is it a code point?
};

/// The step at the front of `text`, which must not be empty.
inline utf8_step first_step(std::string_view text) noexcept {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned const lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1, true};
  }
  if (lead < 0xc2 || lead > 0xf4) {
    return {0, 1, false};
  }
  std::size_t const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The lead byte restricts only the second byte: no overlong forms, no surrogates, nothing above U+10FFFF.
  unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  char32_t code_point = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i, least = 0x80, most = 0xbf) {
    if (i >= text.size() || byte(i) < least || byte(i) > most) {
      return {0, i, false};
    }
    code_point = code_point << 6 | (byte(i) & 0x3f);
  }
  return {code_point, length, true};
}

/// The code point at the end of `text`, which must be valid UTF-8 and not empty.
inline utf8_step last_step(std::string_view text) noexcept {
  std::size_t start = text.size() - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) { --start; }
  return first_step(text.substr(start));
}

/// The offset of the first byte that is not part of valid UTF-8, or npos.
inline std::size_t find_invalid_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    std::uint64_t eight;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    auto const step = first_step(text.substr(at));
    if (!step.valid) {
      return at;
    }
    at += step.length;
  }
  return std::string_view::npos;
}

inline void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  int const continuations = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr std::array<unsigned, 4> leads{0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(leads[static_cast<std::size_t>(continuations)] | c >> (6 * continuations));
  for (int i = continuations - 1; i >= 0; --i) { out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3f)); }
}

/// `bytes` with U+FFFD in place of each maximal invalid part, like Rust's String::from_utf8_lossy.
inline std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    auto const step = first_step(bytes);
    out += step.valid ? bytes.substr(0, step.length) : std::string_view{"\xef\xbf\xbd"};
    bytes.remove_prefix(step.length);
  }
  return out;
}

/// Unicode's White_Space property: 25 code points. U+180E and U+200B are not among them.
constexpr bool is_white_space(char32_t c) noexcept {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

}  // namespace superoffload::text
