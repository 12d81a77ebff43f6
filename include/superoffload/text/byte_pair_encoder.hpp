// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace superoffload::text {

/// Two neighbouring tokens that become one. A merge's index in the list is its rank.
struct merge {
  std::int32_t left = 0;    ///< id of the first token
  std::int32_t right = 0;   ///< id of the second
  std::int32_t result = 0;  ///< id of the token that replaces both
};

/// Byte-pair encoding of one piece of text: of all neighbouring pairs that have a merge, the one of lowest
/// rank is merged (of equals the leftmost), until none is left. Immutable; any number of threads may share
/// it.
class byte_pair_encoder {
public:
  /// `tokens[id]`: the bytes of a token, empty where the id has none or no text can spell it. Every single
  /// byte has a token, and no pair is listed twice. With `ignore_merges`, a piece that is itself a token
  /// becomes that token, even if no merges lead to it.
  byte_pair_encoder(std::span<std::string const> tokens, std::span<merge const> merges, bool ignore_merges);

  /// Appends the tokens of `piece`. Time: n log n in its length.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

private:
  static constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();

  struct pair_slot {
    std::uint64_t pair = 0;
    std::uint32_t rank = no_rank;  ///< no_rank: the slot is empty
    std::int32_t result = 0;
  };
  struct string_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const noexcept {
    return pair * multiplier_ >> shift_;
  }
  [[nodiscard]] pair_slot const& find(std::int32_t left, std::int32_t right) const noexcept;
  void merge_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void merge_long(std::string_view piece, std::vector<std::int32_t>& ids) const;

  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<pair_slot> pairs_;  // open addressing, at most a quarter full: few second probes
  std::uint64_t multiplier_ = 0;
  int shift_ = 0;
  std::unordered_map<std::string, std::int32_t, string_hash, std::equal_to<>>
      whole_;  // pieces that are one token
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/byte_pair_encoder_inl.hpp>
#endif
