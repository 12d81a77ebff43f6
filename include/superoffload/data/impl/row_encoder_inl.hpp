// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/row_encoder.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace superoffload::data {
SUPEROFFLOAD_INLINE row_encoder::row_encoder(text_encoder encode, std::optional<std::int32_t> eos,
                                             encoding_options const& options)
    : encode_{std::move(encode)}, eos_{eos}, options_{options} {
  expect(1 <= options.max_length && options.max_length <= 1 << 30, exit_code::bad_input,
         "max_length: ", options.max_length, ", expected from 1 to ", 1 << 30);
  expect(
      !options.append_eos || eos.has_value(), exit_code::bad_input,
      "append_eos: the tokenizer names no end-of-text token; expected eos_token in tokenizer_config.json, or "
      "append_eos off");
}

SUPEROFFLOAD_INLINE row_encoder::row_encoder(text::tokenizer const& tokenizer,
                                             encoding_options const& options)
    : row_encoder{[tokenizer](std::string_view text) { return tokenizer.encode(text); }, tokenizer.eos_id(),
                  options} {
  tokenizer_ = tokenizer;
  if (options_.vocabulary == 0) {
    options_.vocabulary = tokenizer.size();
  }
}

SUPEROFFLOAD_INLINE encoded_row row_encoder::cut(std::vector<std::int32_t> ids,
                                                 std::vector<range> learnt) const {
  auto const uncut = static_cast<std::int64_t>(ids.size());
  auto const length = std::min(uncut, options_.max_length);
  ids.resize(static_cast<std::size_t>(length));
  for (auto& one : learnt) { one = {std::min(one.begin, length), std::min(one.end, length)}; }
  return {std::move(ids), std::move(learnt), uncut};
}

SUPEROFFLOAD_INLINE encoded_row row_encoder::encode(text::prompt const& text) const {
  auto ids = encode_(text.prompt + text.response);
  if (options_.append_eos) {
    ids.push_back(eos_.value());
  }
  auto const size = ids.size();
  auto const masked = options_.mask_prompt ? std::min(encode_(text.prompt).size(), size) : 0;
  return cut(std::move(ids), {{static_cast<std::int64_t>(masked), static_cast<std::int64_t>(size)}});
}

SUPEROFFLOAD_INLINE encoded_row row_encoder::encode_text(std::string_view text) const {
  auto ids = encode_(text);
  if (options_.append_eos) {
    ids.push_back(eos_.value());
  }
  auto const size = static_cast<std::int64_t>(ids.size());
  return cut(std::move(ids), {{0, size}});
}

SUPEROFFLOAD_INLINE encoded_row row_encoder::encode_messages(std::string_view json, std::string const& origin,
                                                             text::chat_fields const& fields) const {
  expect(tokenizer_ && options_.chat, exit_code::internal, origin,
         ": a conversation without a chat template");
  auto encoded = text::encode(options_.chat->render(json, origin, fields), *tokenizer_, options_.learn);
  std::vector<range> learnt;
  for (auto const& turn : encoded.learnt) { learnt.push_back({turn.begin, turn.end}); }
  auto row = cut(std::move(encoded.ids), std::move(learnt));
  row.learnt_at_zero = encoded.learnt_at_zero;
  return row;
}

}  // namespace superoffload::data
