// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

/// The rules of SentencePiece that replace characters, as its models have them ("precompiled_charsmap"): the
/// size of a trie in bytes, the trie, and the replacements, each with a zero byte behind it. Sizes and units
/// of the trie are little-endian numbers of 32 bits.
///
/// The trie is a double array as the library darts-clone writes it. Bits 0 to 7 of a unit are the byte that
/// leads to it. Bit 8 says that a key ends here. Bits 10 to 30 are the distance to its children, times 256
/// where bit 9 is set. The child for a byte is at (position xor distance) xor byte. The child for byte 0 has
/// bit 31 and, in the other bits, where the key's replacement begins.
class charsmap {
public:
  /// \param blob as above, at most 4 MiB. \throws error(bad_input) that begins with `where`, unless every
  /// byte leads to a unit of the trie from everywhere in it, and every key to a replacement in UTF-8.
  charsmap(std::string_view blob, std::string_view where);

  /// The replacement of the shortest key that `text` begins with; valid as long as the map.
  [[nodiscard]] std::optional<std::string_view> operator()(std::string_view text) const noexcept;

private:
  [[nodiscard]] std::size_t children_of(std::size_t position) const noexcept;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

/// The bytes of `text` in Base64, whose padding may be missing; nothing where it is none.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/charsmap_inl.hpp>
#endif
