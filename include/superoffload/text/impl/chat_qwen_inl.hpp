// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Qwen2.5, whose form is known as ChatML, Qwen3 of April 2025 (which may think) and Qwen3 2507 (which does
// not).
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/impl/chat_row_inl.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace superoffload::text::detail {

enum class qwen_version { chatml, thinking, no_thinking };

class qwen_renderer {
public:
  qwen_renderer(chat_row const& row, transcript& out, qwen_version version)
      : row_{row}, out_{out}, version_{version} {}

  void render() {
    if (version_ != qwen_version::thinking) {
      row_.expect_no_thoughts();
    } else {
      find_last_query();
      if (auto const think = row_.option("enable_thinking"); think.defined() && !think.truthy()) {
        prefill_ = "<think>\n\n</think>\n\n";
      }
    }
    write_system();
    for (std::size_t i = row_.begins_with("system") ? 1 : 0; i < row_.messages().size(); ++i) {
      auto const& message = row_.messages()[i];
      auto const& role = row_.role_of(message);
      if (role == "user" || role == "system") {
        out_.write("<|im_start|>", role, "\n", chat_row::content_of(message), "<|im_end|>\n");
      } else if (role == "assistant") {
        out_.write("<|im_start|>assistant\n");
        out_.begin_turn(i);
        write_turn(i);
        out_.write("<|im_end|>");
        out_.end_turn(prefill_);
        out_.write("\n");
      } else if (role == "tool") {
        write_result(i);
      } else {
        row_.refuse_role(message, "system, user, assistant or tool");
      }
    }
  }

private:
  void write_system() {
    bool const given = row_.begins_with("system");
    std::string_view const system =
        given ? std::string_view{row_.messages()[0]["content"].text()}
        : version_ == qwen_version::chatml
            ? "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
            : "";
    if (auto const tools = row_.tools(); tools.defined()) {
      bool const any = given || version_ == qwen_version::chatml;
      out_.write("<|im_start|>system\n", system, any ? "\n\n" : "",
                 "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are "
                 "provided with function signatures within <tools></tools> XML tags:\n<tools>");
      for (auto const& tool : tools.raw().values) {
        out_.write("\n");
        out_.write_json(tool);
      }
      out_.write(
          "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
          "within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
          "<args-json-object>}\n</tool_call><|im_end|>\n");
    } else if (given || version_ == qwen_version::chatml) {
      out_.write("<|im_start|>system\n", system, "<|im_end|>\n");
    }
  }

  /// The last message of the user that is no result of a tool.
  void find_last_query() {
    for (std::size_t i = row_.messages().size(); i-- > 0;) {
      auto const& message = row_.messages()[i];
      auto const& content = message.raw()["content"];
      if (row_.role_of(message) == "user" && content.is_text() &&
          !(content.text.starts_with("<tool_response>") && content.text.ends_with("</tool_response>"))) {
        last_query_ = i;
        return;
      }
    }
    last_query_ = row_.messages().size() - 1;
  }

  /// The thought of a message, and its content without it.
  [[nodiscard]] std::pair<std::string_view, std::string_view> thought_of(chat_field const& message) const {
    auto const content = chat_row::content_of(message);
    if (auto const& thought = message.raw()["reasoning_content"]; thought.is_text()) {
      return {thought.text, content};
    }
    constexpr std::string_view begin = "<think>";
    constexpr std::string_view end = "</think>";
    auto const first_end = content.find(end);
    if (first_end == content.npos) {
      return {{}, content};
    }
    auto thought = without_last_line_ends(content.substr(0, first_end));
    if (auto const last_begin = thought.rfind(begin); last_begin != thought.npos) {
      thought.remove_prefix(last_begin + begin.size());
    }
    return {without_first_line_ends(thought),
            without_first_line_ends(content.substr(content.rfind(end) + end.size()))};
  }

  void write_turn(std::size_t index) {
    auto const& message = row_.messages()[index];
    if (version_ != qwen_version::thinking) {
      out_.write(chat_row::content_of(message));
      write_calls(message, chat_row::content_of(message));
      return;
    }
    auto const [thought, content] = thought_of(message);
    bool const last = index + 1 == row_.messages().size();
    if (index > last_query_ && (last || !thought.empty())) {
      out_.write("<think>\n", without_first_line_ends(without_last_line_ends(thought)), "\n</think>\n\n",
                 without_first_line_ends(content));
    } else {
      out_.write(content);
    }
    write_calls(message, content);
  }

  void write_calls(chat_field const& message, std::string_view content) {
    auto const calls = message["tool_calls"];
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto const function = function_of(calls[i]);
      out_.write(i > 0 || !content.empty() ? "\n" : "", "<tool_call>\n{\"name\": \"", function["name"].text(),
                 "\", \"arguments\": ");
      auto const arguments = function["arguments"];
      if (!arguments.defined()) {
        arguments.refuse("expected the call's arguments, found nothing");
      }
      if (arguments.raw().is_text() && version_ != qwen_version::chatml) {
        out_.write(arguments.raw().text);
      } else {
        out_.write_json(arguments.raw());
      }
      out_.write("}\n</tool_call>");
    }
  }

  /// Results in a row share one block.
  void write_result(std::size_t index) {
    auto const& messages = row_.messages();
    auto const is_result = [&](std::size_t i) {
      return i < messages.size() && row_.role_of(messages[i]) == "tool";
    };
    auto const content = messages[index]["content"];
    out_.write(index > 0 && is_result(index - 1) ? "" : "<|im_start|>user", "\n<tool_response>\n");
    if (version_ == qwen_version::chatml) {
      out_.write(to_python_text(content.raw()));
    } else {
      out_.write(chat_row::content_of(messages[index]));
    }
    out_.write("\n</tool_response>", is_result(index + 1) ? "" : "<|im_end|>\n");
  }

  chat_row const& row_;
  transcript& out_;
  qwen_version version_;
  std::size_t last_query_ = 0;
  std::string_view prefill_;
};

SUPEROFFLOAD_INLINE void render_chatml(chat_row const& row, transcript& out) {
  qwen_renderer{row, out, qwen_version::chatml}.render();
}
SUPEROFFLOAD_INLINE void render_qwen3(chat_row const& row, transcript& out) {
  qwen_renderer{row, out, qwen_version::thinking}.render();
}
SUPEROFFLOAD_INLINE void render_qwen3_2507(chat_row const& row, transcript& out) {
  qwen_renderer{row, out, qwen_version::no_thinking}.render();
}

}  // namespace superoffload::text::detail
