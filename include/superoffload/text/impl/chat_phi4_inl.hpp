// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// phi-4.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/impl/chat_row_inl.hpp>

namespace superoffload::text::detail {

SUPEROFFLOAD_INLINE void render_phi4(chat_row const& row, transcript& out) {
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
    out.write("<|im_start|>", role, "<|im_sep|>");
    if (role == "assistant") {
      out.begin_turn(i);
    }
    out.write(message["content"].text(), "<|im_end|>");
    if (role == "assistant") {
      out.end_turn();
    }
  }
}

}  // namespace superoffload::text::detail
