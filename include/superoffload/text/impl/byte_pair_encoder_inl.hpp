// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/byte_pair_encoder.hpp>

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
                                                         std::span<merge const> merges, bool ignore_merges) {
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

  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() == 1) {
      byte_ids_[static_cast<unsigned char>(tokens[id][0])] = static_cast<std::int32_t>(id);
    }
  }
  std::vector<std::int32_t> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) {
      continue;
    }
    if (!ignore_merges) {
      ids.clear();
      encode(tokens[id], ids);
      if (ids.size() != 1) {
        continue;
      }
    }
    whole_.emplace(tokens[id], static_cast<std::int32_t>(id));
  }
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

SUPEROFFLOAD_INLINE void byte_pair_encoder::encode(std::string_view piece,
                                                   std::vector<std::int32_t>& ids) const {
  if (auto const whole = whole_.find(piece); whole != whole_.end()) {
    ids.push_back(whole->second);
  } else if (piece.size() <= detail::short_piece) {
    merge_short(piece, ids);
  } else {
    merge_long(piece, ids);
  }
}

SUPEROFFLOAD_INLINE void byte_pair_encoder::merge_short(std::string_view piece,
                                                        std::vector<std::int32_t>& ids) const {
  // By position; merged symbols stay in place. An entry is a rank and, to break ties, the position.
  std::array<std::int32_t, detail::short_piece> symbols;
  std::array<std::int32_t, detail::short_piece> results;
  std::array<std::uint64_t, detail::short_piece> entries;
  std::array<std::uint8_t, detail::short_piece> previous, next;
  auto const size = piece.size();
  auto const look_up = [&](std::size_t i) {
    auto const& found = find(symbols[i], symbols[next[i]]);
    results[i] = found.result;
    entries[i] = std::uint64_t{found.rank} << 8 | i;
  };
  for (std::size_t i = 0; i < size; ++i) {
    symbols[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
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
  for (std::size_t i = 0; i < size; i = next[i]) { ids.push_back(symbols[i]); }
}

SUPEROFFLOAD_INLINE void byte_pair_encoder::merge_long(std::string_view piece,
                                                       std::vector<std::int32_t>& ids) const {
  struct symbol {
    std::int32_t id;  // negative: merged into the one before it
    std::uint32_t previous, next;
  };
  auto const end = static_cast<std::uint32_t>(piece.size());
  std::vector<symbol> symbols(end);
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
    symbols[i] = {byte_ids_[static_cast<unsigned char>(piece[i])], i - 1,
                  i + 1};  // previous is unused for the first
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
  for (auto const& symbol : symbols) {
    if (symbol.id >= 0) {
      ids.push_back(symbol.id);
    }
  }
}

}  // namespace superoffload::text
