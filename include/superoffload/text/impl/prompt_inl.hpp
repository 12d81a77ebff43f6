// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/prompt.hpp>
#include <superoffload/text/utf8.hpp>

namespace superoffload::text {
namespace detail {

/// Whether Python's str.strip() would return an empty string: White_Space and the separators U+001C to
/// U+001F.
SUPEROFFLOAD_INLINE bool is_blank(std::string_view text) {
  while (!text.empty()) {
    auto const step = first_step(text);
    bool const space =
        is_white_space(step.code_point) || (step.code_point >= 0x1c && step.code_point <= 0x1f);
    if (!step.valid || !space) {
      return false;
    }
    text.remove_prefix(step.length);
  }
  return true;
}

SUPEROFFLOAD_INLINE std::string render_deepspeed(std::string_view instruction, std::string_view input,
                                                 std::string_view system) {
  auto const opening = system.empty() ? std::string{} : concat(system, "\n\n");
  auto const section = is_blank(input) ? std::string{} : concat("### Input:\n", input, "\n\n");
  return concat(opening, "### Instruction:\n", instruction, "\n\n", section, "### Response:\n");
}

SUPEROFFLOAD_INLINE std::string render_alpaca(std::string_view instruction, std::string_view input,
                                              std::string_view system) {
  constexpr std::string_view alone =
      "Below is an instruction that describes a task. Write a response that appropriately completes the "
      "request.";
  constexpr std::string_view with_input =
      "Below is an instruction that describes a task, paired with an input that provides further context. "
      "Write a response that appropriately completes the request.";
  auto const opening = !system.empty() ? system : input.empty() ? alone : with_input;
  auto const section = input.empty() ? std::string{} : concat("\n\n### Input:\n", input);
  return concat(opening, "\n\n### Instruction:\n", instruction, section, "\n\n### Response:");
}

}  // namespace detail

SUPEROFFLOAD_INLINE prompt render(prompt_template form, std::string_view instruction, std::string_view input,
                                  std::string_view output, std::string_view system) {
  auto const write = form == prompt_template::alpaca ? detail::render_alpaca : detail::render_deepspeed;
  return {write(instruction, input, system), std::string{output}};
}

SUPEROFFLOAD_INLINE prompt_template parse_prompt_template(std::string_view name) {
  if (name == "deepspeed") {
    return prompt_template::deepspeed;
  }
  if (name == "alpaca") {
    return prompt_template::alpaca;
  }
  fail(exit_code::bad_input, "template '", printable(name), "': expected deepspeed or alpaca");
}

}  // namespace superoffload::text
