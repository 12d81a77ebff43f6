// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/label_tokens.hpp>
#include <superoffload/data/split.hpp>
#include <superoffload/text/chat_template.hpp>
#include <superoffload/text/prompt.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace superoffload::data {

/// How rows become ids.
struct encoding_options {
  text::prompt_template prompt_template = text::prompt_template::alpaca;  ///< for rows of Alpaca
  bool mask_prompt = true;                                                ///< only the response is a target
  bool append_eos = true;                                                 ///< the model learns where to stop
  std::int64_t max_length = 2048;                ///< tokens, from 1 to 2^30; longer rows are cut on the right
  int threads = 0;                               ///< 0 = one for each core; the result does not depend on it
  std::optional<text::chat_template> chat = {};  ///< for conversations
  text::learnt_turns learn = text::learnt_turns::all;  ///< of conversations
  /// Of the model: the ids of tokenized rows are below it. With a tokenizer, 0 means the tokenizer's.
  std::int64_t vocabulary = 0;
};

/// Converts text to ids, with the special tokens that the tokenizer puts around a text. Called by several
/// threads at once.
using text_encoder = std::function<std::vector<std::int32_t>(std::string_view)>;

/// A row as the model is to see it, cut on the right to max_length.
struct encoded_row {
  std::vector<std::int32_t> ids;    ///< at most max_length of them
  std::vector<range> learnt;        ///< of ids, in order; empty ranges are possible
  std::int64_t uncut = 0;           ///< how many ids the row had before it was cut
  std::int64_t learnt_at_zero = 0;  ///< learnt turns to which the row gives the weight 0

  [[nodiscard]] bool was_cut() const noexcept { return uncut > static_cast<std::int64_t>(ids.size()); }
  /// How many ids are a target. The first never is: no id precedes it.
  [[nodiscard]] std::int64_t label_tokens() const noexcept { return data::label_tokens(learnt); }
};

/// Turns the texts of rows into ids. Immutable; any number of threads may use one.
class row_encoder {
public:
  /// \throws error(bad_input) when end-of-text is asked for and `eos` is missing, or for a max_length out of
  /// range
  row_encoder(text_encoder encode, std::optional<std::int32_t> eos, encoding_options const& options);
  /// Encodes with a copy of `tokenizer`, which also names end-of-text. Conversations need this constructor.
  row_encoder(text::tokenizer const& tokenizer, encoding_options const& options);

  /// Those of the constructor; `vocabulary` is never 0 if there is a tokenizer.
  [[nodiscard]] encoding_options const& options() const noexcept { return options_; }

  /// The ids of prompt and response as one text, and end-of-text if asked for. The prompt is as long as its
  /// ids when it is tokenized on its own, at most the row.
  [[nodiscard]] encoded_row encode(text::prompt const& text) const;
  /// All of `text` is learnt.
  [[nodiscard]] encoded_row encode_text(std::string_view text) const;
  /// A conversation, as chat_template renders it. \throws error(bad_input) that names `origin` and the field
  [[nodiscard]] encoded_row encode_messages(std::string_view json, std::string const& origin,
                                            text::chat_fields const& fields) const;
  /// `ids` and their learnt ranges, cut to max_length.
  [[nodiscard]] encoded_row cut(std::vector<std::int32_t> ids, std::vector<range> learnt) const;

private:
  text_encoder encode_;
  std::optional<text::tokenizer> tokenizer_;  // conversations need more of it than its ids
  std::optional<std::int32_t> eos_;
  encoding_options options_;
};

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/row_encoder_inl.hpp>
#endif
