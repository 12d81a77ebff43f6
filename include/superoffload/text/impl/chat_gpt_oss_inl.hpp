// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// gpt-oss: the harmony format.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/impl/chat_row_inl.hpp>
#include <superoffload/text/impl/harmony_tools_inl.hpp>

#include <string>
#include <string_view>

namespace superoffload::text::detail {

class gpt_oss_renderer {
public:
  gpt_oss_renderer(chat_row const& row, transcript& out) : row_{row}, out_{out} {
    for (std::size_t i = 0; i < row.messages().size(); ++i) {
      if (row.role_of(row.messages()[i]) == "assistant" && !row.has_calls(row.messages()[i])) {
        last_final_ = i + 1;
      }
    }
  }

  void render() {
    bool const instructed = row_.begins_with("developer") || row_.begins_with("system");
    write_system();
    write_developer(instructed ? row_.messages()[0]["content"].text_or("") : std::string_view{});
    for (std::size_t i = instructed ? 1 : 0; i < row_.messages().size(); ++i) {
      auto const& message = row_.messages()[i];
      auto const& role = row_.role_of(message);
      if (role == "assistant") {
        expect_no_channels(message);
        out_.write("<|start|>assistant");
        out_.begin_turn(i);
        if (row_.has_calls(message)) {
          write_call(i);
        } else {
          write_answer(i);
        }
        out_.end_turn();
      } else if (role == "tool") {
        write_result(message);
      } else if (role == "user") {
        out_.write("<|start|>user<|message|>", message["content"].text(), "<|end|>");
      } else {
        row_.refuse_role(message, "user, assistant or tool; system or developer in the first message");
      }
    }
  }

private:
  /// The template writes the day of the rendering. The data of a run must not depend on that.
  static constexpr std::string_view default_date = "2025-08-05";

  void write_system() {
    out_.write(
        "<|start|>system<|message|>",
        row_.option("model_identity").text_or("You are ChatGPT, a large language model trained by OpenAI."),
        "\nKnowledge cutoff: 2024-06\nCurrent date: ", row_.option("date_string").text_or(default_date),
        "\n\nReasoning: ", row_.option("reasoning_effort").text_or("medium"), "\n\n");
    if (auto const tools = row_.option("builtin_tools"); tools.truthy()) {
      bool browser = false;
      bool python = false;
      for (std::size_t i = 0; i < tools.size(); ++i) {
        auto const& name = tools[i].text();
        if (name != "browser" && name != "python") {
          tools[i].refuse("expected browser or python, found '", printable(name, 40), "'");
        }
        (name == "browser" ? browser : python) = true;
      }
      out_.write("# Tools\n\n", browser ? harmony_browser : "", python ? harmony_python : "");
    }
    out_.write("# Valid channels: analysis, commentary, final. Channel must be included for every message.",
               row_.tools().defined()
                   ? "\nCalls to these tools must go to the commentary channel: 'functions'."
                   : "",
               "<|end|>");
  }

  void write_developer(std::string_view instructions) {
    if (instructions.empty() && !row_.tools().defined()) {
      return;
    }
    out_.write("<|start|>developer<|message|>");
    if (!instructions.empty()) {
      out_.write("# Instructions\n\n", instructions, "\n\n");
    }
    if (row_.tools().defined()) {
      out_.write("# Tools\n\n", harmony_namespace("functions", row_.tools()));
    }
    out_.write("<|end|>");
  }

  static void expect_no_channels(chat_field const& message) {
    for (auto const* const name : {"content", "thinking"}) {
      auto const field = message[name];
      for (auto const* const tag : {"<|channel|>analysis<|message|>", "<|channel|>final<|message|>"}) {
        if (field.text_or("").find(tag) != std::string_view::npos) {
          field.refuse("You have passed a message containing <|channel|> tags in the ", name,
                       " field. Instead of doing this, you should pass analysis messages (the string between "
                       "'<|message|>' and '<|end|>') in the 'thinking' field, and final messages (the string "
                       "between '<|message|>' and '<|end|>') in the 'content' field.");
        }
      }
    }
  }

  /// An earlier answer comes without its thought and ends in another token than the last message.
  void write_answer(std::size_t index) {
    auto const& message = row_.messages()[index];
    bool const last = index + 1 == row_.messages().size();
    if (auto const thought = message["thinking"]; last && thought.defined()) {
      out_.write("<|channel|>analysis<|message|>", thought.text(), "<|end|><|start|>assistant");
    }
    out_.write("<|channel|>final<|message|>", message["content"].text(), last ? "<|return|>" : "<|end|>");
    called_ = nullptr;
  }

  /// What is thought or said beside a call is written as a thought, unless an answer follows later.
  void write_call(std::size_t index) {
    auto const& message = row_.messages()[index];
    auto const calls = message["tool_calls"];
    if (calls.size() != 1) {
      calls.refuse("the template writes the first call of a message only; expected one call a message");
    }
    auto const content = message["content"].text_or("");
    auto const thought = message["thinking"].text_or("");
    if (!content.empty() && !thought.empty()) {
      message["content"].refuse(
          "Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis "
          "message in one or the other, but not both.");
    }
    if (index >= last_final_ && !(content.empty() && thought.empty())) {
      out_.write("<|channel|>analysis<|message|>", content, thought, "<|end|><|start|>assistant");
    }
    auto const function = function_of(calls[0]);
    auto const named = function["name"];
    auto const& name = named.text();
    auto const arguments = function["arguments"];
    if (!arguments.defined()) {
      arguments.refuse("expected the call's arguments, found nothing");
    }
    out_.write(" to=functions.", name, "<|channel|>commentary ", function["content_type"].text_or("json"),
               "<|message|>");
    out_.write_json(arguments.raw());
    out_.write("<|call|>");
    called_ = &name;
  }

  void write_result(chat_field const& message) {
    if (called_ == nullptr) {
      message.refuse("Message has tool role, but there was no previous assistant message with a tool call!");
    }
    out_.write("<|start|>functions.", *called_, " to=assistant<|channel|>commentary<|message|>");
    out_.write_json(message.raw()["content"]);
    out_.write("<|end|>");
  }

  chat_row const& row_;
  transcript& out_;
  std::size_t last_final_ = 0;           // one more than the index of the last answer
  std::string const* called_ = nullptr;  // the function whose result may follow
};

SUPEROFFLOAD_INLINE void render_gpt_oss(chat_row const& row, transcript& out) {
  gpt_oss_renderer{row, out}.render();
}

}  // namespace superoffload::text::detail
