// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Seed-OSS.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/impl/chat_row_inl.hpp>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace superoffload::text::detail {

class seed_oss_renderer {
public:
  seed_oss_renderer(chat_row const& row, transcript& out)
      : row_{row}, out_{out}, tools_{row.tools()}, budget_{row.option("thinking_budget")} {}

  void render() {
    write_system();
    write_budget();
    for (std::size_t i = row_.begins_with("system") ? 1 : 0; i < row_.messages().size(); ++i) {
      auto const& message = row_.messages()[i];
      if (row_.role_of(message) == "assistant") {
        write_turn(i);
      } else {
        out_.write("<seed:bos>", row_.role_of(message), "\n", message["content"].text(), "<seed:eos>");
      }
    }
  }

private:
  static constexpr std::string_view unthinking =
      "<seed:think>\n<seed:cot_budget_reflect>The current thinking budget is 0, so I will directly start "
      "answering the question.</seed:cot_budget_reflect>\n</seed:think>";

  static std::string_view stripped_text(json_value const& value) {
    return value.is_text() ? stripped(value.text) : std::string_view{};
  }

  void write_system() {
    bool const given = row_.begins_with("system");
    if (given) {
      out_.write("<seed:bos>system\n", row_.messages()[0]["content"].text());
    } else if (tools_.defined()) {
      out_.write(
          "<seed:bos>system\nYou are Doubao, a helpful AI assistant. You may call one or more functions to "
          "assist with the user query.");
    }
    if (row_.option("use_json_tooldef").truthy()) {
      out_.write(
          "\nTool List:\nYou are authorized to use the following tools (described in JSON Schema format). "
          "Before performing any task, you must decide how to call them based on the descriptions and "
          "parameters of these tools.\n");
      if (tools_.defined()) {
        out_.write_json(tools_.raw());
      } else {
        out_.write("[]");
      }
    } else {
      for (std::size_t i = 0; i < tools_.size(); ++i) { write_function(tools_[i]); }
    }
    if (tools_.defined()) {
      out_.write(
          "\n工具调用请遵循如下格式:\n<seed:tool_call>\n<function=example_function_name>\n"
          "<parameter=example_parameter_1>value_1</parameter>\n<parameter=example_parameter_2>This is the "
          "value for the second parameter\nthat can span\nmultiple lines</parameter>\n</function>\n"
          "</seed:tool_call>\n");
    }
    out_.write(given || tools_.defined() ? "<seed:eos>" : "");
  }

  static std::string_view python_type(json_value const& type) {
    return type.is_text("string")                              ? "str"
           : type.is_text("number") || type.is_text("integer") ? "int"
           : type.is_text("boolean")                           ? "bool"
           : type.is_text("array")                             ? "list"
                                                               : "Any";
  }

  /// A tool as a Python function.
  void write_function(chat_field const& tool) {
    if (auto const type = tool["type"]; !type.raw().is_text("function")) {
      type.refuse("expected function, found ", printable(to_python_text(type.raw()), 40));
    }
    auto const function = tool["function"].object();
    auto const parameters = function["parameters"].object();
    auto const properties = parameters["properties"].object();
    out_.write("\n\nFunction:\ndef ", function["name"].text(), "(");
    for (std::size_t i = 0; i < properties.size(); ++i) {
      out_.write(i == 0 ? "" : ",", properties.raw().names[i], ": ",
                 python_type(properties[i].raw()["type"]));
    }
    out_.write("):\n    \"\"\"\n    ", stripped(function["description"].text_or("")), "\n\n");
    auto const required = texts_of(parameters.raw()["required"]);
    if (properties.truthy()) {
      out_.write("    Args:");
    }
    for (std::size_t i = 0; i < properties.size(); ++i) {
      auto const& name = properties.raw().names[i];
      write_value(name, properties[i], required.contains(name) ? " [必填]" : " [选填]");
    }
    out_.write("\n");
    auto const returned = function["returns"]["properties"];
    if (returned.truthy()) {
      out_.write("    Returns:");
    }
    for (std::size_t i = 0; i < returned.size(); ++i) {
      write_value(returned.object().raw().names[i], returned[i], "");
    }
    out_.write("\n    \"\"\"");
  }

  void write_value(std::string_view name, chat_field const& value, std::string_view necessity) {
    auto const& description = value.raw()["description"];
    out_.write("\n    - ", name, " (", python_type(value.raw()["type"]), ")", necessity, ": ",
               description.truthy() ? to_python_text(description) : std::string{});
  }

  void write_budget() {
    if (!budget_.defined()) {
      return;
    }
    auto const& written = budget_.raw().text;
    double const budget = std::strtod(written.c_str(), nullptr);
    if (budget == 0.0) {
      prefill_ = unthinking;
      out_.write(
          "<seed:bos>system\nYou are an intelligent assistant that can answer questions in one step without "
          "the need for reasoning and thinking, that is, your thinking budget is 0. Next, please skip the "
          "thinking process and directly start answering the user's questions.\n<seed:eos>");
    } else if (budget != -1.0) {
      struct gear {
        double budget;
        std::string_view interval;
      };
      static constexpr std::array<gear, 7> gears{{{0, "0"},
                                                  {512, "128"},
                                                  {1024, "256"},
                                                  {2048, "512"},
                                                  {4096, "512"},
                                                  {8192, "1024"},
                                                  {16384, "1024"}}};
      auto interval = gears.back().interval;
      for (auto const& gear : gears) {
        if (budget <= gear.budget) {
          interval = gear.interval;
          break;
        }
      }
      out_.write(
          "<seed:bos>system\nYou are an intelligent assistant with reflective ability. In the process of "
          "thinking and reasoning, you need to strictly follow the thinking budget, which is ",
          written, ". That is, you need to complete your thinking within ", written,
          " tokens and start answering the user's questions. You will reflect on your thinking process "
          "every ",
          interval, " tokens, stating how many tokens have been used and how many are left.\n<seed:eos>");
    }
  }

  /// The line end after the role belongs to the generation prompt.
  void write_turn(std::size_t index) {
    auto const& message = row_.messages()[index];
    auto const thought = stripped_text(message.raw()["reasoning_content"]);
    auto const content = stripped(chat_row::content_of(message));
    bool const calls = row_.has_calls(message);
    if (content.empty() && !calls) {
      message["content"].refuse(
          "the template writes no end of turn after an empty answer; expected a text that is not blank");
    }
    out_.write("<seed:bos>assistant\n");
    out_.begin_turn(index);
    if (!thought.empty()) {
      out_.write("<seed:think>", thought, "</seed:think>\n");
    }
    if (!content.empty()) {
      out_.write(content);
      out_.write(calls ? "\n\n" : "");
    }
    if (calls) {
      write_calls(message["tool_calls"]);
    }
    out_.write("<seed:eos>");
    out_.end_turn(prefill_);
  }

  void write_calls(chat_field const& calls) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto const function = function_of(calls[i]);
      out_.write(i == 0 ? "" : "\n", "<seed:tool_call>\n<function=", function["name"].text(), ">\n");
      auto const arguments = function["arguments"];
      for (std::size_t k = 0; arguments.defined() && k < arguments.object().size(); ++k) {
        out_.write("<parameter=", arguments.raw().names[k], ">", to_python_text(arguments.raw().values[k]),
                   "</parameter>\n");
      }
      out_.write("</function>\n</seed:tool_call>");
    }
  }

  chat_row const& row_;
  transcript& out_;
  chat_field tools_;
  chat_field budget_;
  std::string_view prefill_;
};

SUPEROFFLOAD_INLINE void render_seed_oss(chat_row const& row, transcript& out) {
  seed_oss_renderer{row, out}.render();
}

}  // namespace superoffload::text::detail
