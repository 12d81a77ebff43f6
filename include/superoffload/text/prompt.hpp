// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace superoffload::text {

/// How an instruction, its input and the answer are combined into a training text.
enum class prompt_template {
  deepspeed,  ///< "### Instruction:", "### Input:", "### Response:", one blank line between them
  alpaca,     ///< the same headings after Stanford Alpaca's opening sentence
};

/// A training text in its two parts.
struct prompt {
  std::string prompt;    ///< the model's input
  std::string response;  ///< the expected answer; the whole text is prompt + response
};

/// The input's section is omitted for an empty `input`; for the deepspeed template white space counts as
/// empty. A `system` text that is not empty and a blank line stand at the beginning, in alpaca in place of
/// the opening sentence.
prompt render(prompt_template form, std::string_view instruction, std::string_view input,
              std::string_view output, std::string_view system = {});

/// \throws error(bad_input) unless `name` is "deepspeed" or "alpaca".
prompt_template parse_prompt_template(std::string_view name);

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/prompt_inl.hpp>
#endif
