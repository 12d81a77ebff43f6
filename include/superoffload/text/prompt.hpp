// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace superoffload::text {

/// How an instruction, its input and the answer become the text that a model is trained on.
enum class prompt_template {
  deepspeed,  ///< "### Instruction:", "### Input:", "### Response:", one blank line between them
  alpaca,     ///< the same headings after Stanford Alpaca's opening sentence
};

struct prompt {
  std::string prompt;    ///< what the model is given
  std::string response;  ///< what it should answer; the whole text is prompt + response
};

/// The input's section is left out for an empty `input`; the deepspeed template takes white space alone for
/// empty.
prompt render(prompt_template form, std::string_view instruction, std::string_view input,
              std::string_view output);

/// \throws error(bad_input) unless `name` is "deepspeed" or "alpaca".
prompt_template parse_prompt_template(std::string_view name);

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/prompt_inl.hpp>
#endif
