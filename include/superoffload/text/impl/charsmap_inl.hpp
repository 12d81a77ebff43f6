// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/charsmap.hpp>
#include <superoffload/text/utf8.hpp>

#include <utility>

namespace superoffload::text {
namespace detail {

inline constexpr std::size_t longest_charsmap = std::size_t{4} << 20;
inline constexpr std::uint32_t replacement_bit = std::uint32_t{1} << 31;  // of a unit that is no step
inline constexpr std::uint32_t key_bit = std::uint32_t{1} << 8;

SUPEROFFLOAD_INLINE std::uint32_t little_endian_32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) { value = value << 8 | static_cast<unsigned char>(bytes[i]); }
  return value;
}

}  // namespace detail

SUPEROFFLOAD_INLINE charsmap::charsmap(std::string_view blob, std::string_view where) {
  expect(blob.size() >= 4 && blob.size() <= detail::longest_charsmap, exit_code::bad_input, where, ": ",
         blob.size(), " bytes, expected 4 to ", detail::longest_charsmap);
  std::size_t const size = detail::little_endian_32(blob);
  blob.remove_prefix(4);
  expect(size >= 4 && size <= blob.size(), exit_code::bad_input, where, ": a trie of ", size,
         " bytes, expected 4 to ", blob.size());
  for (std::size_t at = 0; at + 4 <= size; at += 4) {
    units_.push_back(detail::little_endian_32(blob.substr(at, 4)));
  }
  replacements_ = blob.substr(4 * units_.size());
  expect(find_invalid_utf8(replacements_) == std::string::npos, exit_code::bad_input, where,
         ": expected replacements in UTF-8");
  for (std::size_t at = 0; at < units_.size(); ++at) {
    if (at > 0 && (units_[at] & detail::replacement_bit) != 0) {
      continue;
    }
    auto const children = children_of(at);
    expect((children | 0xff) < units_.size(), exit_code::bad_input, where, ": unit ", at,
           " of the trie leads to unit ", children | 0xff, ", expected less than ", units_.size());
    if ((units_[at] & detail::key_bit) == 0) {
      continue;
    }
    std::size_t const begin = units_[children] & ~detail::replacement_bit;
    bool const at_character =
        begin == replacements_.size() ||
        (begin < replacements_.size() && (static_cast<unsigned char>(replacements_[begin]) & 0xc0) != 0x80);
    expect(at_character, exit_code::bad_input, where, ": unit ", at,
           " of the trie has the replacement at byte ", begin, ", expected the begin of a character in ",
           replacements_.size(), " bytes");
  }
}

SUPEROFFLOAD_INLINE std::size_t charsmap::children_of(std::size_t position) const noexcept {
  auto const unit = units_[position] & ~detail::replacement_bit;
  return position ^ (std::size_t{unit >> 10} << ((unit >> 9 & 1) != 0 ? 8 : 0));
}

SUPEROFFLOAD_INLINE std::optional<std::string_view> charsmap::operator()(
    std::string_view text) const noexcept {
  auto children = children_of(0);
  for (char const c : text) {
    std::uint32_t const byte = static_cast<unsigned char>(c);
    auto const at = children ^ byte;
    if (byte == 0 || (units_[at] & (detail::replacement_bit | 0xff)) != byte) {
      break;
    }
    children = children_of(at);
    if ((units_[at] & detail::key_bit) != 0) {
      auto const rest = std::string_view{replacements_}.substr(units_[children] & ~detail::replacement_bit);
      return rest.substr(0, rest.find('\0'));
    }
  }
  return std::nullopt;
}

SUPEROFFLOAD_INLINE std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < 2 && text.ends_with('=') && (text.size() + i) % 4 == 0; ++i) {
    text.remove_suffix(1);
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;  // of bits that are in no byte yet
  for (char const c : text) {
    auto const value = letters.find(c);
    if (value == letters.npos) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  bool const rest_is_zero = (bits & ((1u << count) - 1)) == 0;
  return count < 6 && rest_is_zero ? std::optional{std::move(bytes)} : std::nullopt;
}

}  // namespace superoffload::text
