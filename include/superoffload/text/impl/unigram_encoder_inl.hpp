// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/unigram_encoder.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <limits>

namespace superoffload::text {

SUPEROFFLOAD_INLINE unigram_encoder::unigram_encoder(std::span<std::string const> tokens,
                                                     std::span<double const> scores, unigram_options options)
    : options_{options} {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) {
      entries_.push_back({tokens[id], scores[id], static_cast<std::int32_t>(id)});
      least = std::min(least, scores[id]);
    }
  }
  unknown_score_ = least - 10;  // SentencePiece's penalty
  std::ranges::sort(entries_, [](entry const& a, entry const& b) {
    return a.text != b.text ? a.text < b.text : a.id > b.id;
  });
  entries_.erase(std::unique(entries_.begin(), entries_.end(),
                             [](entry const& a, entry const& b) { return a.text == b.text; }),
                 entries_.end());
  std::size_t at = 0;
  for (std::size_t byte = 0; byte < firsts_.size(); ++byte) {
    while (at < entries_.size() && static_cast<unsigned char>(entries_[at].text[0]) < byte) { ++at; }
    firsts_[byte] = at;
  }
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    auto const* const found = find(std::string{"<0x"} + digits[byte / 16] + digits[byte % 16] + '>');
    byte_ids_[byte] = found != nullptr ? found->id : -1;
  }
}

SUPEROFFLOAD_INLINE unigram_encoder::entry const* unigram_encoder::find(std::string_view text) const {
  auto const found = std::ranges::lower_bound(entries_, text, {}, &entry::text);
  return found != entries_.end() && found->text == text ? &*found : nullptr;
}

/// Visits the tokens that `text` begins with, the shortest first.
template <class Visit>
void unigram_encoder::for_each_prefix(std::string_view text, Visit visit) const {
  // Those that begin with the first `size` bytes of the text; the one that has no more bytes is the first.
  std::size_t const first = static_cast<unsigned char>(text[0]);
  auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(firsts_[first]);
  auto end = entries_.begin() + static_cast<std::ptrdiff_t>(firsts_[first + 1]);
  for (std::size_t size = 1; begin != end; ++size) {
    if (begin->text.size() == size) {
      visit(*begin);
      ++begin;
    }
    if (size == text.size()) {
      return;
    }
    auto const byte_of = [size](entry const& one) { return static_cast<unsigned char>(one.text[size]); };
    auto const byte = static_cast<unsigned char>(text[size]);
    begin = std::ranges::lower_bound(begin, end, byte, {}, byte_of);
    end = std::ranges::upper_bound(begin, end, byte, {}, byte_of);
  }
}

SUPEROFFLOAD_INLINE void unigram_encoder::encode(std::string_view piece, std::vector<std::int32_t>& ids,
                                                 std::vector<std::size_t>* starts) const {
  /// The best way to a place: where its last token begins, and the sum of its scores.
  struct step {
    double score = 0;
    std::size_t begin = std::string_view::npos;
    bool known = false;
  };
  std::vector<step> best(piece.size() + 1);
  auto const offer = [&](std::size_t begin, std::size_t end, double score, bool known) {
    if (best[end].begin == std::string_view::npos || score > best[end].score) {
      best[end] = {score, begin, known};
    }
  };
  for (std::size_t at = 0; at < piece.size();) {
    auto const length = first_step(piece.substr(at)).length;
    bool has_character = false;
    for_each_prefix(piece.substr(at), [&](entry const& token) {
      offer(at, at + token.text.size(), best[at].score + token.score, token.id != options_.unk_id);
      has_character = has_character || token.text.size() == length;
    });
    if (!has_character) {
      offer(at, at + length, best[at].score + unknown_score_, false);
    }
    at += length;
  }
  std::vector<std::size_t> ends;  // from the last one on; unknown ones in a row are one
  bool known_behind = true;
  for (auto end = piece.size(); end > 0; end = best[end].begin) {
    if (best[end].known || known_behind) {
      ends.push_back(end);
    }
    known_behind = best[end].known;
  }
  std::size_t begin = 0;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    emit(piece, begin, *end, ids, starts);
    begin = *end;
  }
}

SUPEROFFLOAD_INLINE void unigram_encoder::emit(std::string_view piece, std::size_t begin, std::size_t end,
                                               std::vector<std::int32_t>& ids,
                                               std::vector<std::size_t>* starts) const {
  auto const text = piece.substr(begin, end - begin);
  auto const byte_id = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  auto const add = [&](std::int32_t id, std::size_t at) {
    ids.push_back(id);
    if (starts != nullptr) {
      starts->push_back(at);
    }
  };
  if (auto const* const token = find(text); token != nullptr) {
    add(token->id, begin);
  } else if (options_.byte_fallback &&
             std::ranges::all_of(text, [&](char byte) { return byte_id(byte) >= 0; })) {
    for (std::size_t i = 0; i < text.size(); ++i) { add(byte_id(text[i]), begin + i); }
  } else {
    expect(options_.unk_id.has_value(), exit_code::bad_input, "text '", printable(text, 60),
           "' has no token; expected a model with unk_id");
    add(*options_.unk_id, begin);
  }
}

}  // namespace superoffload::text
