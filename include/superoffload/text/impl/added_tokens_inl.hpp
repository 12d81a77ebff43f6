// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/added_tokens.hpp>
#include <superoffload/text/utf8.hpp>
#include <superoffload/text/word_character.hpp>

#include <algorithm>
#include <tuple>

namespace superoffload::text {
namespace detail {

SUPEROFFLOAD_INLINE std::size_t white_space_at_front(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    auto const step = first_step(text.substr(length));
    if (!is_white_space(step.code_point)) {
      break;
    }
    length += step.length;
  }
  return length;
}

SUPEROFFLOAD_INLINE std::size_t white_space_at_back(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    auto const step = last_step(text.substr(0, text.size() - length));
    if (!is_white_space(step.code_point)) {
      break;
    }
    length += step.length;
  }
  return length;
}

SUPEROFFLOAD_INLINE bool stands_alone(std::string_view before, std::string_view after) {
  return (before.empty() || !is_word_character(last_step(before).code_point)) &&
         (after.empty() || !is_word_character(first_step(after).code_point));
}

}  // namespace detail

SUPEROFFLOAD_INLINE added_token_finder::added_token_finder(std::vector<added_token> tokens)
    : tokens_{std::move(tokens)} {
  std::ranges::sort(tokens_, {}, [](added_token const& t) { return std::tie(t.content, t.id); });
  auto const same = [](added_token const& a, added_token const& b) { return a.content == b.content; };
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(), same), tokens_.end());
  for (auto const& token : tokens_) { begins_[static_cast<unsigned char>(token.content.front())] = true; }
}

SUPEROFFLOAD_INLINE added_token const* added_token_finder::longest_at_front(std::string_view text) const {
  // [low, high): the tokens that begin with the first `depth` bytes of the text. A token of exactly that
  // length comes first.
  auto low = tokens_.begin();
  auto high = tokens_.end();
  added_token const* longest = nullptr;
  for (std::size_t depth = 0; low != high; ++depth) {
    if (low->content.size() == depth) {
      longest = &*low++;
    }
    if (depth == text.size()) {
      break;
    }
    auto const byte = static_cast<unsigned char>(text[depth]);
    auto const byte_of = [depth](added_token const& t) {
      return static_cast<unsigned char>(t.content[depth]);
    };
    low = std::partition_point(low, high, [&](added_token const& t) { return byte_of(t) < byte; });
    high = std::partition_point(low, high, [&](added_token const& t) { return byte_of(t) == byte; });
  }
  return longest;
}

SUPEROFFLOAD_INLINE std::vector<stretch> added_token_finder::operator()(std::string_view text) const {
  if (tokens_.empty() && !text.empty()) {
    return {{text}};
  }
  std::vector<stretch> stretches;
  std::size_t done = 0;       // end of the last token, with the white space that it includes
  std::size_t space_end = 0;  // from the last token's own end up to here all is white space
  for (std::size_t at = 0; at < text.size();) {
    auto const* const token =
        begins_[static_cast<unsigned char>(text[at])] ? longest_at_front(text.substr(at)) : nullptr;
    if (token == nullptr) {
      ++at;
      continue;
    }
    auto const begin = at;
    auto const end = at += token->content.size();
    if (token->single_word && !detail::stands_alone(text.substr(0, begin), text.substr(end))) {
      continue;
    }
    auto first = begin;
    if (token->lstrip && done < begin) {
      first -= detail::white_space_at_back(text.substr(done, begin - done));
    }
    auto last = end;
    if (token->rstrip) {
      // A token of white space may begin inside the white space of the token before it: never scan that
      // again.
      if (end >= space_end) {
        space_end = end + detail::white_space_at_front(text.substr(end));
      }
      last = space_end;
    }
    if (done < first) {
      stretches.push_back({text.substr(done, first - done)});
    }
    stretches.push_back({text.substr(begin, end - begin), token->id});
    done = last;
  }
  if (done < text.size()) {
    stretches.push_back({text.substr(done)});
  }
  return stretches;
}

}  // namespace superoffload::text
