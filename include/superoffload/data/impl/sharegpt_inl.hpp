// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/impl/row_fields_inl.hpp>
#include <superoffload/data/sharegpt.hpp>
#include <superoffload/io/json.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace superoffload::data {
namespace detail {

/// Keeps the order of the members, which chat templates write.
using ordered_json = nlohmann::ordered_json;

/// What is valid already.
SUPEROFFLOAD_INLINE ordered_json in_order(std::string_view text) {
  return ordered_json::parse(text.begin(), text.end());
}

inline constexpr std::array<std::pair<std::string_view, std::string_view>, 10> sharegpt_roles{
    {{"human", "user"},
     {"user", "user"},
     {"gpt", "assistant"},
     {"assistant", "assistant"},
     {"model", "assistant"},
     {"system", "system"},
     {"tool", "tool"},
     {"observation", "tool"},
     {"function_response", "tool"},
     {"function_call", "assistant"}}};

SUPEROFFLOAD_INLINE std::string_view role_of(io::json_field const& from) {
  std::string known;
  for (auto const& [name, role] : sharegpt_roles) {
    if (from.text() == name) {
      return role;
    }
    known += concat(known.empty() ? "" : ", ", name);
  }
  fail(exit_code::bad_input, from.where(), ": ", from.shown(), ", expected one of ", known);
}

/// The calls of a function_call: `value` is their JSON text.
SUPEROFFLOAD_INLINE ordered_json calls_of(io::json_field const& value, int depth) {
  auto const& text = value.text();
  auto const parsed = io::parse_json(text, value.where(), {text.size(), depth});
  auto const ordered = in_order(text);
  auto calls = ordered_json::array();
  auto const add = [&](io::json const& call, ordered_json const& as_written) {
    io::json_field const fields{call, value.where()};
    auto const name = fields["name"].text();
    auto const arguments = fields["arguments"];
    expect(arguments.raw().is_object() || arguments.raw().is_string(), exit_code::bad_input,
           arguments.where(), ": expected an object or its JSON text, found ", arguments.shown());
    calls.push_back(
        {{"type", "function"}, {"function", {{"name", name}, {"arguments", as_written["arguments"]}}}});
  };
  if (parsed.is_array()) {
    for (std::size_t i = 0; i < parsed.size(); ++i) { add(parsed[i], ordered[i]); }
  } else {
    add(parsed, ordered);
  }
  expect(!calls.empty(), exit_code::bad_input, value.where(), ": no call, expected at least one");
  return calls;
}

/// `list`: what the data call the list of turns.
SUPEROFFLOAD_INLINE ordered_json message_of(io::json_field const& turn, int depth, std::string const& list) {
  expect(!turn.raw().is_object() || turn.has("from") || !turn.has("role"), exit_code::bad_input, turn.where(),
         ": a turn with 'role', not 'from'; expected --columns messages=", printable(list, 60),
         " for messages with role and content");
  auto const from = turn["from"];
  ordered_json message{{"role", std::string{role_of(from)}}};
  if (from.text() == "function_call") {
    message["content"] = "";
    message["tool_calls"] = calls_of(turn["value"], depth);
  } else {
    message["content"] = turn["value"].text();
  }
  if (turn.has("weight")) {
    message["weight"] = turn["weight"].raw();
  }
  return message;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string messages_of_sharegpt(row const& one, column_names const& columns, int depth) {
  auto const document = io::parse_json(one.text, one.origin, {one.text.size(), depth});
  detail::row_fields const fields{document, one.origin, columns};
  auto const turns = fields["conversations"];
  turns.require_array();
  expect(!turns.raw().empty(), exit_code::bad_input, turns.where(), ": no turn, expected at least one");
  auto const as_written = detail::in_order(one.text);
  detail::ordered_json converted{{"messages", detail::ordered_json::array()}};
  auto& messages = converted["messages"];
  if (auto const system = fields.text_or_empty("system"); !system.empty()) {
    messages.push_back({{"role", "system"}, {"content", system}});
  }
  for (std::size_t i = 0; i < turns.raw().size(); ++i) {
    messages.push_back(detail::message_of(turns[i], depth, column_of(columns, "conversations")));
  }
  if (fields.has("tools")) {
    auto const tools = fields["tools"];
    auto list = as_written[column_of(columns, "tools")];
    if (list.is_string()) {
      auto const& text = tools.text();
      list = detail::ordered_json::array();
      if (!text.empty()) {
        io::parse_json(text, tools.where(), {text.size(), depth});
        list = detail::in_order(text);
      }
    }
    expect(list.is_array(), exit_code::bad_input, tools.where(),
           ": expected an array or its JSON text, found ", tools.shown());
    if (!list.empty()) {
      converted["tools"] = std::move(list);
    }
  }
  if (document.contains("chat_template_kwargs")) {
    converted["chat_template_kwargs"] = as_written["chat_template_kwargs"];
  }
  return converted.dump();
}

}  // namespace superoffload::data
