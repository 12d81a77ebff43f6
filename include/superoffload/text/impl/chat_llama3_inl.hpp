// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Llama 3.1 and 3.3.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/impl/chat_row_inl.hpp>

#include <algorithm>

namespace superoffload::text::detail {

class llama3_renderer {
public:
  llama3_renderer(chat_row const& row, transcript& out)
      : row_{row},
        out_{out},
        builtin_tools_{row.option("builtin_tools")},
        tools_{row.option("custom_tools").defined() ? row.option("custom_tools") : row.tools()} {
    row.expect_no_thoughts();
    if (builtin_tools_.defined()) {
      for (std::size_t i = 0; i < builtin_tools_.size(); ++i) { static_cast<void>(builtin_tools_[i].text()); }
    }
  }

  void render() {
    auto const in_user_message = row_.option("tools_in_user_message");
    bool const tools_of_user = tools_.defined() && (!in_user_message.defined() || in_user_message.truthy());
    std::size_t next = row_.begins_with("system") ? 1 : 0;
    write_system(next == 1 ? content_of(row_.messages()[0]) : std::string_view{}, !tools_of_user);
    if (tools_of_user) {
      write_tools_of_user(next++);
    }
    for (; next < row_.messages().size(); ++next) { write_message(next); }
  }

private:
  static std::string_view content_of(chat_field const& message) {
    return stripped(chat_row::content_of(message));
  }

  void open(std::string_view role) { out_.write("<|start_header_id|>", role, "<|end_header_id|>\n\n"); }

  void write_tools() {
    for (auto const& tool : tools_.raw().values) {
      out_.write_json(tool, 4);
      out_.write("\n\n");
    }
  }

  void write_system(std::string_view message, bool tools_here) {
    out_.write(row_.beginning_of_text());
    open("system");
    if (builtin_tools_.defined() || tools_.defined()) {
      out_.write("Environment: ipython\n");
    }
    if (builtin_tools_.defined()) {
      out_.write("Tools: ");
      std::string_view between;
      for (auto const& tool : builtin_tools_.raw().values) {
        if (tool.text != "code_interpreter") {
          out_.write(between, tool.text);
          between = ", ";
        }
      }
      out_.write("\n\n");
    }
    out_.write("Cutting Knowledge Date: December 2023\nToday Date: ",
               row_.option("date_string").text_or("26 Jul 2024"), "\n\n");
    if (tools_.defined() && tools_here) {
      out_.write(
          "You have access to the following functions. To call a function, please respond with JSON for a "
          "function call.Respond in the format {\"name\": function name, \"parameters\": dictionary of "
          "argument name and its value}.Do not use variables.\n\n");
      write_tools();
    }
    out_.write(message, "<|eot_id|>");
  }

  void write_tools_of_user(std::size_t index) {
    if (index == row_.messages().size()) {
      tools_.refuse("Cannot put tools in the first user message when there's no first user message!");
    }
    auto const& message = row_.messages()[index];
    if (row_.role_of(message) != "user") {
      message["role"].refuse("the template writes the tools into this message; expected the user's");
    }
    open("user");
    out_.write(
        "Given the following functions, please respond with a JSON for a function call with its proper "
        "arguments that best answers the given prompt.\n\nRespond in the format {\"name\": function name, "
        "\"parameters\": dictionary of argument name and its value}.Do not use variables.\n\n");
    write_tools();
    out_.write(content_of(message), "<|eot_id|>");
  }

  void write_message(std::size_t index) {
    auto const& message = row_.messages()[index];
    auto const& role = row_.role_of(message);
    if (row_.has_calls(message)) {
      write_call(index);
    } else if (role == "tool" || role == "ipython") {
      open("ipython");
      auto const& content = message.raw()["content"];
      bool const encoded = content.is_text() || content.is_array() || content.is_object();
      out_.write(encoded ? to_json(content) : to_python_text(content), "<|eot_id|>");
    } else {
      open(role);
      bool const turn = role == "assistant";
      if (turn) {
        out_.begin_turn(index);
      }
      out_.write(content_of(message), "<|eot_id|>");
      if (turn) {
        out_.end_turn();
      }
    }
  }

  void write_call(std::size_t index) {
    auto const& message = row_.messages()[index];
    auto const calls = message["tool_calls"];
    if (calls.size() != 1) {
      calls.refuse("This model only supports single tool-calls at once!");
    }
    if (!content_of(message).empty()) {
      message["content"].refuse("the template writes no content beside a call; expected none");
    }
    auto const function = calls[0]["function"].object();
    auto const named = function["name"];
    auto const& name = named.text();
    auto const arguments = function["arguments"];
    open("assistant");
    out_.begin_turn(index);
    auto const& builtin = builtin_tools_.raw().values;
    if (std::ranges::any_of(builtin, [&](json_value const& tool) { return tool.text == name; })) {
      out_.write("<|python_tag|>", name, ".call(");
      for (std::size_t i = 0; i < arguments.object().size(); ++i) {
        out_.write(i == 0 ? "" : ", ", arguments.raw().names[i], "=\"", arguments[i].text(), "\"");
      }
      out_.write(")");
    } else {
      if (!arguments.defined()) {
        arguments.refuse("expected the call's arguments, found nothing");
      }
      out_.write("{\"name\": \"", name, "\", \"parameters\": ");
      out_.write_json(arguments.raw());
      out_.write("}");
    }
    out_.write(builtin_tools_.defined() ? "<|eom_id|>" : "<|eot_id|>");
    out_.end_turn();
  }

  chat_row const& row_;
  transcript& out_;
  chat_field builtin_tools_;
  chat_field tools_;
};

SUPEROFFLOAD_INLINE void render_llama3(chat_row const& row, transcript& out) {
  llama3_renderer{row, out}.render();
}

}  // namespace superoffload::text::detail
