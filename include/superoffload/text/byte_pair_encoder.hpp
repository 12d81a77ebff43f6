// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
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

/// What a text becomes that no token spells, and what the tokens spell.
struct encoder_options {
  bool ignore_merges = false;  ///< a piece that is itself a token becomes it, even if no merges lead to it
  bool byte_level = true;      ///< merges begin with bytes; otherwise with characters
  bool byte_fallback =
      false;              ///< a character without token becomes tokens of its bytes, "<0x00>" to "<0xFF>"
  bool fuse_unk = false;  ///< characters in a row without token become one `unk_id`
  std::optional<std::int32_t> unk_id = {};  ///< of characters without token; none: they are left out
  /// @{
  /// What the token of a character begins with where it is not the first one of a piece, and what it ends
  /// with where it is the last one. Not for bytes.
  std::string continuing_prefix = {}, end_suffix = {};
  /// @}
};

/// Byte-pair encoding of one piece of text: of all neighbouring pairs that have a merge, the one of lowest
/// rank is merged (of equals the leftmost), until none is left. Immutable; any number of threads may share
/// it.
class byte_pair_encoder {
public:
  /// `tokens[id]`: the bytes or characters of a token, empty where the id has none or no text can spell it.
  /// No pair is listed twice.
  byte_pair_encoder(std::span<std::string const> tokens, std::span<merge const> merges,
                    encoder_options options);

  /// Appends the tokens of `piece`, and to `starts`, if there is one, the byte of `piece` where each begins.
  /// Time: n log n in its length.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids,
              std::vector<std::size_t>* starts = nullptr) const;

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
  /// A token before any merge, with the bytes of the piece that it stands for.
  struct symbol {
    std::int32_t id;
    std::uint32_t begin, size;
  };

  [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const noexcept {
    return pair * multiplier_ >> shift_;
  }
  [[nodiscard]] pair_slot const& find(std::int32_t left, std::int32_t right) const noexcept;
  void read_symbols(std::span<std::string const> tokens);
  void read_joints(std::span<std::string const> tokens, std::span<merge const> merges);
  [[nodiscard]] std::int32_t first_symbol(std::string_view text, bool last) const;
  [[nodiscard]] std::int32_t id_of(char32_t character) const noexcept;
  [[nodiscard]] std::int32_t id_of(std::string_view letter, std::string_view character) const;
  [[nodiscard]] bool may_join(std::int32_t left, std::int32_t right) const noexcept;
  [[nodiscard]] std::vector<symbol> symbols_of(std::string_view piece) const;
  void encode_symbols(std::string_view piece, std::vector<std::int32_t>& ids,
                      std::vector<std::size_t>* starts) const;
  void merge_symbols(std::span<symbol const> symbols, std::vector<std::int32_t>& ids,
                     std::vector<std::size_t>* starts) const;
  template <class IdAt, class Emit>
  void merge_short(std::size_t size, IdAt id_at, Emit emit) const;
  template <class IdAt, class Emit>
  void merge_long(std::size_t size, IdAt id_at, Emit emit) const;

  encoder_options options_;
  std::array<std::int32_t, 256> byte_ids_{};      // of bytes; -1 where there is no token
  std::vector<std::int32_t> character_ids_;       // by code point; -1 where there is no token
  std::array<std::int32_t, 256> fallback_ids_{};  // of "<0x00>" and so on; -1 where there is no such token
  std::unordered_map<std::string, std::int32_t, string_hash, std::equal_to<>>
      affixed_;                        // all tokens, where characters get a prefix or a suffix
  bool affixes_ = false;               // whether they do
  bool complete_ = false;              // every byte has a token
  bool cuts_ = false;                  // whether joints_ holds all pairs that a merge may join
  std::vector<std::uint64_t> joints_;  // sorted
  std::vector<pair_slot> pairs_;       // open addressing, at most a quarter full: few second probes
  std::uint64_t multiplier_ = 0;
  int shift_ = 0;
  std::unordered_map<std::string, std::int32_t, string_hash, std::equal_to<>>
      whole_;  // pieces that are one token
};

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/byte_pair_encoder_inl.hpp>
#endif
