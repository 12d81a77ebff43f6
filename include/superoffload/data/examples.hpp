// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/text/prompt.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace superoffload::data {

struct encoding_options {
  text::prompt_template prompt_template = text::prompt_template::alpaca;
  bool mask_prompt = true;  ///< only the response is a target
  bool append_eos = true;   ///< the model learns where to stop
  std::int64_t max_length = 2048;
  int threads = 0;  ///< 0 = one for each core; the result does not depend on it
};

/// Converts text to ids, with the special tokens that the tokenizer puts around a text. Called by several
/// threads at once.
using text_encoder = std::function<std::vector<std::int32_t>(std::string_view)>;

/// Tokenizes each row's prompt and response as one text, appends `eos` if asked, and cuts on the right to
/// `max_length`; the end-of-text may be cut, too. The masked part is as long as the ids of the prompt
/// tokenized on its own, at most the row. Some rows may end up without labels, but not all.
/// \throws error(bad_input) when no row has a label, or when end-of-text is asked for and `eos` is missing
example_set encode_examples(std::span<instruction const> rows, text_encoder const& encode,
                            std::optional<std::int32_t> eos, encoding_options const& options);

example_set encode_examples(std::span<instruction const> rows, text::tokenizer const& tokenizer,
                            encoding_options const& options);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/examples_inl.hpp>
#endif
