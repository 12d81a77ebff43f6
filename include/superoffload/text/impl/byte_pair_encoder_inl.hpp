// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/byte_alphabet.hpp>
#include <superoffload/text/byte_pair_encoder.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <bit>
#include <queue>
#include <random>

namespace superoffload::text {
namespace detail {

inline constexpr std::size_t short_piece = 48;  // up to here a scan for the lowest rank beats a heap

inline constexpr std::uint64_t no_entry = std::uint64_t{std::numeric_limits<std::uint32_t>::max()} << 8;

constexpr std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace detail

SUPEROFFLOAD_INLINE byte_pair_encoder::byte_pair_encoder(std::span<std::string const> tokens,
                                                         std::span<merge const> merges,
                                                         encoder_options options)
    : options_{options} {
  auto const slots = std::bit_ceil(std::max<std::size_t>(4 * merges.size(), 16));
  pairs_.resize(slots);
  shift_ = 64 - std::countr_zero(slots);
  // Random, so that no file can be crafted whose pairs all hash to the same slot.
  std::random_device random;
  multiplier_ = (std::uint64_t{random()} << 32 | random()) | 1;
  std::uint32_t rank = 0;
  for (auto const& [left, right, result] : merges) {
    auto slot = slot_of(detail::pair_of(left, right));
    while (pairs_[slot].rank != no_rank) { slot = (slot + 1) & (slots - 1); }
    pairs_[slot] = {detail::pair_of(left, right), rank++, result};
  }
  read_symbols(tokens);
  affixes_ = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  if (affixes_) {
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      affixed_.emplace(tokens[id], static_cast<std::int32_t>(id));
    }
    affixed_.erase("");
  } else if (!complete_) {
    read_joints(tokens, merges);
  }
  std::vector<std::int32_t> ids;
  whole_.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) {
      continue;
    }
    if (!options.ignore_merges) {
      ids.clear();
      encode(tokens[id], ids);
      if (ids.size() != 1 || ids[0] != static_cast<std::int32_t>(id)) {
        continue;
      }
    }
    whole_.emplace(tokens[id], static_cast<std::int32_t>(id));
  }
}

SUPEROFFLOAD_INLINE void byte_pair_encoder::read_symbols(std::span<std::string const> tokens) {
  byte_ids_.fill(-1);
  fallback_ids_.fill(-1);
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    auto const& token = tokens[id];
    auto const number = static_cast<std::int32_t>(id);
    if (token.size() == 6 && token.starts_with("<0x") && token[5] == '>') {
      auto const high = digits.find(token[3]);
      auto const low = digits.find(token[4]);
      if (high != digits.npos && low != digits.npos) {
        fallback_ids_[16 * high + low] = number;
      }
    }
    if (options_.byte_level && token.size() == 1) {
      byte_ids_[static_cast<unsigned char>(token[0])] = number;
    } else if (!options_.byte_level && !token.empty() && first_step(token).length == token.size()) {
      auto const character = first_step(token).code_point;
      if (character_ids_.size() <= character) {
        character_ids_.resize(std::size_t{character} + 1, -1);
      }
      character_ids_[character] = number;
    }
  }
  complete_ = options_.byte_level && std::ranges::find(byte_ids_, -1) == byte_ids_.end();
}

SUPEROFFLOAD_INLINE std::int32_t byte_pair_encoder::id_of(char32_t character) const noexcept {
  return character < character_ids_.size() ? character_ids_[character] : -1;
}

/// The token of a `letter` with its prefix and suffix, or of the `character` without.
SUPEROFFLOAD_INLINE std::int32_t byte_pair_encoder::id_of(std::string_view letter,
                                                          std::string_view character) const {
  if (!affixes_) {
    return first_symbol(character, false);
  }
  auto const found = affixed_.find(letter);
  return found != affixed_.end() ? found->second : -1;
}

/// The token of the first byte or character of a token's text, or of the last one.
SUPEROFFLOAD_INLINE std::int32_t byte_pair_encoder::first_symbol(std::string_view text, bool last) const {
  if (options_.byte_level) {
    return byte_ids_[static_cast<unsigned char>(last ? text.back() : text.front())];
  }
  return id_of((last ? last_step(text) : first_step(text)).code_point);
}

/// Two symbols next to each other are in one token only if some merge joins texts that end and begin with
/// them. So a piece may be cut everywhere else, which makes words of a text that the pre-tokenizer leaves
/// whole. That does not hold where merges join tokens that no text spells.
SUPEROFFLOAD_INLINE void byte_pair_encoder::read_joints(std::span<std::string const> tokens,
                                                        std::span<merge const> merges) {
  cuts_ = true;
  auto const is_spelt = [&](std::int32_t id) {
    return !tokens[static_cast<std::size_t>(id)].empty() && options_.unk_id != id &&
           std::ranges::find(fallback_ids_, id) == fallback_ids_.end();
  };
  joints_.reserve(merges.size());
  for (auto const& [left, right, result] : merges) {
    // The 256 tokens of bytes have six letters.
    auto const& before = tokens[static_cast<std::size_t>(left)];
    auto const& behind = tokens[static_cast<std::size_t>(right)];
    bool const unusual = before.size() == 6 || behind.size() == 6 || options_.unk_id == left ||
                         options_.unk_id == right || before.empty() || behind.empty();
    if (unusual && (!is_spelt(left) || !is_spelt(right))) {
      cuts_ = false;
      joints_.clear();
      return;
    }
    joints_.push_back(detail::pair_of(first_symbol(before, true), first_symbol(behind, false)));
  }
  std::ranges::sort(joints_);
  joints_.erase(std::unique(joints_.begin(), joints_.end()), joints_.end());
}

SUPEROFFLOAD_INLINE bool byte_pair_encoder::may_join(std::int32_t left, std::int32_t right) const noexcept {
  return !cuts_ || std::ranges::binary_search(joints_, detail::pair_of(left, right));
}

SUPEROFFLOAD_INLINE byte_pair_encoder::pair_slot const& byte_pair_encoder::find(
    std::int32_t left, std::int32_t right) const noexcept {
  auto const pair = detail::pair_of(left, right);
  auto slot = slot_of(pair);
  while (pairs_[slot].pair != pair && pairs_[slot].rank != no_rank) {
    slot = (slot + 1) & (pairs_.size() - 1);
  }
  return pairs_[slot];
}

SUPEROFFLOAD_INLINE void byte_pair_encoder::encode(std::string_view piece, std::vector<std::int32_t>& ids,
                                                   std::vector<std::size_t>* starts) const {
  if (!complete_) {
    encode_symbols(piece, ids, starts);
    return;
  }
  auto const emit = [&](std::int32_t id, std::size_t begin) {
    ids.push_back(id);
    if (starts != nullptr) {
      starts->push_back(begin);
    }
  };
  auto const id_at = [&](std::size_t i) { return byte_ids_[static_cast<unsigned char>(piece[i])]; };
  if (auto const whole = whole_.find(piece); whole != whole_.end()) {
    emit(whole->second, 0);
  } else if (piece.size() <= detail::short_piece) {
    merge_short(piece.size(), id_at, emit);
  } else {
    merge_long(piece.size(), id_at, emit);
  }
}

/// As Hugging Face tokenizers makes them. There, an unknown character waits for the next known one, and so
/// comes behind the bytes of characters between them.
SUPEROFFLOAD_INLINE std::vector<byte_pair_encoder::symbol> byte_pair_encoder::symbols_of(
    std::string_view piece) const {
  std::vector<symbol> symbols;
  symbols.reserve(piece.size());
  std::optional<symbol> unknown;
  auto const flush = [&] {
    if (unknown) {
      symbols.push_back(*unknown);
      unknown.reset();
    }
  };
  for (std::size_t at = 0; at < piece.size();) {
    auto const length = options_.byte_level ? 1 : first_step(piece.substr(at)).length;
    auto const text = piece.substr(at, length);
    auto const begin = static_cast<std::uint32_t>(at);
    auto const size = static_cast<std::uint32_t>(length);
    at += length;
    // At the level of bytes, a character is a letter of the alphabet for them.
    auto letter = options_.byte_level ? to_byte_alphabet(text) : std::string{text};
    if (affixes_) {
      letter = (begin > 0 ? options_.continuing_prefix : "") + letter +
               (at == piece.size() ? options_.end_suffix : "");
    }
    if (auto const id = id_of(letter, text); id >= 0) {
      flush();
      symbols.push_back({id, begin, size});
      continue;
    }
    auto const fallback = [&](char byte) { return fallback_ids_[static_cast<unsigned char>(byte)]; };
    if (options_.byte_fallback &&
        std::ranges::all_of(letter, [&](char byte) { return fallback(byte) >= 0; })) {
      for (std::uint32_t i = 0; i < letter.size(); ++i) {
        symbols.push_back({fallback(letter[i]), begin + (letter == text ? i : 0), 1});
      }
    } else if (options_.unk_id && unknown && options_.fuse_unk) {
      unknown->size = begin + size - unknown->begin;
    } else if (options_.unk_id) {
      flush();
      unknown = symbol{*options_.unk_id, begin, size};
    }
  }
  flush();
  return symbols;
}

SUPEROFFLOAD_INLINE void byte_pair_encoder::encode_symbols(std::string_view piece,
                                                           std::vector<std::int32_t>& ids,
                                                           std::vector<std::size_t>* starts) const {
  auto const one_token = [&](std::string_view text, std::size_t begin) {
    auto const whole = whole_.find(text);
    if (whole == whole_.end()) {
      return false;
    }
    ids.push_back(whole->second);
    if (starts != nullptr) {
      starts->push_back(begin);
    }
    return true;
  };
  if (options_.ignore_merges && one_token(piece, 0)) {
    return;
  }
  auto const symbols = symbols_of(piece);
  for (std::size_t begin = 0, end = 0; begin < symbols.size(); begin = end) {
    do { ++end; } while (end < symbols.size() && may_join(symbols[end - 1].id, symbols[end].id));
    auto const part = std::span{symbols}.subspan(begin, end - begin);
    auto const first = part.front().begin;
    auto const size = std::size_t{part.back().begin} + part.back().size - first;
    if (!cuts_ || options_.ignore_merges || !one_token(piece.substr(first, size), first)) {
      merge_symbols(part, ids, starts);
    }
  }
}

SUPEROFFLOAD_INLINE void byte_pair_encoder::merge_symbols(std::span<symbol const> symbols,
                                                          std::vector<std::int32_t>& ids,
                                                          std::vector<std::size_t>* starts) const {
  auto const emit = [&](std::int32_t id, std::size_t at) {
    ids.push_back(id);
    if (starts != nullptr) {
      starts->push_back(symbols[at].begin);
    }
  };
  auto const id_at = [&](std::size_t i) { return symbols[i].id; };
  if (symbols.size() <= detail::short_piece) {
    merge_short(symbols.size(), id_at, emit);
  } else {
    merge_long(symbols.size(), id_at, emit);
  }
}

template <class IdAt, class Emit>
void byte_pair_encoder::merge_short(std::size_t size, IdAt id_at, Emit emit) const {
  // By position; merged symbols stay in place. An entry is a rank and, to break ties, the position.
  std::array<std::int32_t, detail::short_piece> symbols;
  std::array<std::int32_t, detail::short_piece> results;
  std::array<std::uint64_t, detail::short_piece> entries;
  std::array<std::uint8_t, detail::short_piece> previous, next;
  auto const look_up = [&](std::size_t i) {
    auto const& found = find(symbols[i], symbols[next[i]]);
    results[i] = found.result;
    entries[i] = std::uint64_t{found.rank} << 8 | i;
  };
  for (std::size_t i = 0; i < size; ++i) {
    symbols[i] = id_at(i);
    previous[i] = static_cast<std::uint8_t>(i - 1);  // unused for the first
    next[i] = static_cast<std::uint8_t>(i + 1);
    entries[i] = detail::no_entry;
  }
  for (std::size_t i = 0; i + 1 < size; ++i) { look_up(i); }
  for (;;) {
    auto lowest = detail::no_entry;
    for (std::size_t i = 0; i < size; ++i) { lowest = std::min(lowest, entries[i]); }
    if (lowest >= detail::no_entry) {
      break;
    }
    auto const left = lowest & 0xff;
    auto const right = next[left];
    symbols[left] = results[left];
    entries[left] = entries[right] = detail::no_entry;
    next[left] = next[right];
    if (next[left] < size) {
      previous[next[left]] = static_cast<std::uint8_t>(left);
      look_up(left);
    }
    if (left > 0) {
      look_up(previous[left]);
    }
  }
  for (std::size_t i = 0; i < size; i = next[i]) { emit(symbols[i], i); }
}

template <class IdAt, class Emit>
void byte_pair_encoder::merge_long(std::size_t size, IdAt id_at, Emit emit) const {
  struct link {
    std::int32_t id;  // negative: merged into the one before it
    std::uint32_t previous, next;
  };
  auto const end = static_cast<std::uint32_t>(size);
  std::vector<link> symbols(end);
  // Lowest rank first, then leftmost: rank and position in one number. An entry whose pair has changed is
  // stale.
  std::vector<std::uint64_t> entries;
  entries.reserve(end);
  std::priority_queue queue{std::greater<std::uint64_t>{}, std::move(entries)};
  auto const look_up = [&](std::uint32_t left) {
    auto const rank = find(symbols[left].id, symbols[symbols[left].next].id).rank;
    if (rank != no_rank) {
      queue.push(std::uint64_t{rank} << 32 | left);
    }
  };
  for (std::uint32_t i = 0; i < end; ++i) {
    symbols[i] = {id_at(i), i - 1, i + 1};  // previous is unused for the first
  }
  for (std::uint32_t i = 0; i + 1 < end; ++i) { look_up(i); }
  while (!queue.empty()) {
    auto const rank = static_cast<std::uint32_t>(queue.top() >> 32);
    auto const left = static_cast<std::uint32_t>(queue.top());
    queue.pop();
    auto const right = symbols[left].next;
    if (symbols[left].id < 0 || right == end) {
      continue;
    }
    auto const& found = find(symbols[left].id, symbols[right].id);
    if (found.rank != rank) {
      continue;
    }
    symbols[left] = {found.result, symbols[left].previous, symbols[right].next};
    symbols[right].id = -1;
    if (symbols[left].next != end) {
      symbols[symbols[left].next].previous = left;
      look_up(left);
    }
    if (left != 0) {
      look_up(symbols[left].previous);
    }
  }
  for (std::uint32_t i = 0; i < end; ++i) {
    if (symbols[i].id >= 0) {
      emit(symbols[i].id, i);
    }
  }
}

}  // namespace superoffload::text
