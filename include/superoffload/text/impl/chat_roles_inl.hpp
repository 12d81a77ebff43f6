// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// phi-4 and SmolLM2, whose templates write roles and contents, and neither tools nor thoughts.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/impl/chat_row_inl.hpp>

#include <string_view>

namespace superoffload::text::detail {

struct role_marks {
  std::string_view after_role;
  std::string_view after_turn;
};

SUPEROFFLOAD_INLINE void render_roles(chat_row const& row, transcript& out, role_marks const& marks) {
  row.expect_no_thoughts();
  if (row.tools().defined()) {
    row.tools().refuse("the template shows no tools; expected none");
  }
  for (std::size_t i = 0; i < row.messages().size(); ++i) {
    auto const& message = row.messages()[i];
    auto const& role = row.role_of(message);
    if (role != "system" && role != "user" && role != "assistant") {
      row.refuse_role(message, "system, user or assistant");
    }
    if (row.has_calls(message)) {
      message["tool_calls"].refuse("the template writes no calls; expected none");
    }
    out.write("<|im_start|>", role, marks.after_role);
    if (role == "assistant") {
      out.begin_turn(i);
    }
    out.write(message["content"].text(), "<|im_end|>");
    if (role == "assistant") {
      out.end_turn();
    }
    out.write(marks.after_turn);
  }
}

SUPEROFFLOAD_INLINE void render_phi4(chat_row const& row, transcript& out) {
  render_roles(row, out, {.after_role = "<|im_sep|>", .after_turn = ""});
}

SUPEROFFLOAD_INLINE void render_smollm2(chat_row const& row, transcript& out) {
  if (!row.begins_with("system")) {
    out.write("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
              "Face<|im_end|>\n");
  }
  render_roles(row, out, {.after_role = "\n", .after_turn = "\n"});
}

}  // namespace superoffload::text::detail
