// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/sharegpt.hpp>
#include <superoffload/io/json.hpp>

#include <doctest/doctest.h>

#include "data/complaint.hpp"

#include <algorithm>
#include <string>

using namespace superoffload;
using namespace superoffload::data;

namespace {

io::json converted(std::string const& text, column_names const& columns = {}) {
  return io::json::parse(messages_of_sharegpt({text, "rows.jsonl:7"}, columns, 32));
}

std::string complaint(std::string const& text) {
  return testing::complaint_of([&] { converted(text); });
}

TEST_CASE("turns become messages") {
  auto const plain = converted(R"({"id": 3, "conversations": [{"from": "system", "value": "s"},
    {"from": "human", "value": "h"}, {"from": "gpt", "value": "g", "weight": 0},
    {"from": "user", "value": "u"}, {"from": "assistant", "value": ""}, {"from": "model", "value": "m"}]})");
  CHECK(plain == io::json::parse(R"({"messages": [{"role": "system", "content": "s"},
    {"role": "user", "content": "h"}, {"role": "assistant", "content": "g", "weight": 0}, {"role": "user", "content": "u"},
    {"role": "assistant", "content": ""}, {"role": "assistant", "content": "m"}]})"));
  CHECK(converted(R"({"system": "s", "talk": [{"from": "human", "value": "h"}]})",
                  {{"conversations", "talk"}}) ==
        io::json::parse(
            R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "h"}]})"));
}

TEST_CASE("calls and what tools answer") {
  auto const row = converted(R"({"tools": "[{\"name\": \"f\"}]", "chat_template_kwargs": {"a": 1},
    "conversations": [{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},
    {"from": "observation", "value": "4"}, {"from": "tool", "value": "5"},
    {"from": "function_call", "value": "[{\"name\": \"f\", \"arguments\": \"{}\"}]"},
    {"from": "function_response", "value": "6"}]})");
  CHECK(row == io::json::parse(R"({"tools": [{"name": "f"}], "chat_template_kwargs": {"a": 1}, "messages": [
    {"role": "assistant", "content": "", "tool_calls": [{"type": "function",
      "function": {"name": "f", "arguments": {"x": 1}}}]},
    {"role": "tool", "content": "4"}, {"role": "tool", "content": "5"},
    {"role": "assistant", "content": "", "tool_calls": [{"type": "function",
      "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "content": "6"}]})"));
  CHECK(messages_of_sharegpt({R"({"tools": [{"z": 1, "a": 2}], "conversations":
    [{"from": "function_call", "value": "{\"arguments\": {\"y\": 1, \"b\": 2}, \"name\": \"f\"}"}]})",
                              "rows.jsonl:7"},
                             {}, 32) ==
        R"({"messages":[{"role":"assistant","content":"","tool_calls":[{"type":"function","function":)"
        R"({"name":"f","arguments":{"y":1,"b":2}}}]}],"tools":[{"z":1,"a":2}]})");
  CHECK(!converted(R"({"tools": "", "conversations": [{"from": "gpt", "value": "a"}]})").contains("tools"));
}

TEST_CASE("a row that is no conversation is refused by its field") {
  struct refusal {
    char const* text;
    char const* says;
  };
  for (
      auto const& one : {
          refusal{"[]", "expected an object"},
          {"{}", "field 'conversations' is missing"},
          {R"({"conversations": {}})", "conversations: expected an array, found object"},
          {R"({"conversations": null})", "conversations: expected an array, found null"},
          {R"({"conversations": []})", "conversations: no turn"},
          {R"({"conversations": ["a"]})", "conversations[0]: expected an object, found \"a\""},
          {R"({"conversations": [{"value": "a"}]})", "conversations[0]: field 'from' is missing"},
          {R"({"conversations": [{"role": "user", "content": "a"}]})",
           "conversations[0]: a turn with 'role', not 'from'; expected --columns messages=conversations "
           "for "},
          {R"({"conversations": [{"from": "gpt"}]})", "conversations[0]: field 'value' is missing"},
          {R"({"conversations": [{"from": 1, "value": "a"}]})",
           "conversations[0].from: expected a string, found 1"},
          {R"({"conversations": [{"from": "gpt", "value": "a"}, {"from": "robot", "value": "a"}]})",
           "conversations[1].from: \"robot\", expected one of human, user, gpt"},
          {R"({"conversations": [{"from": "gpt", "value": null}]})",
           "conversations[0].value: expected a string, found null"},
          {R"({"conversations": [{"from": "gpt", "value": ["a"]}]})",
           "conversations[0].value: expected a string, found array"},
          {R"({"conversations": [{"from": "function_call", "value": "call f"}]})",
           "conversations[0].value: byte 1: expected valid JSON"},
          {R"({"conversations": [{"from": "function_call", "value": "[]"}]})",
           "conversations[0].value: no call"},
          {R"({"conversations": [{"from": "function_call", "value": "{\"name\": \"f\"}"}]})",
           "conversations[0].value: field 'arguments' is missing"},
          {R"({"conversations": [{"from": "function_call", "value": "{\"name\": 1, \"arguments\": {}}"}]})",
           "conversations[0].value: name: expected a string, found 1"},
          {R"({"conversations": [{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": 1}"}]})",
           "conversations[0].value: arguments: expected an object or its JSON text, found 1"},
          {R"({"system": 1, "conversations": [{"from": "gpt", "value": "a"}]})",
           "system: expected a string, found 1"},
          {R"({"tools": {}, "conversations": [{"from": "gpt", "value": "a"}]})",
           "tools: expected an array or its JSON text, found object"},
          {R"({"tools": "f", "conversations": [{"from": "gpt", "value": "a"}]})",
           "tools: byte 2: expected valid JSON"},
      }) {
    CAPTURE(std::string{one.text});
    auto const found = complaint(one.text);
    CHECK_MESSAGE(found.starts_with(one.says), found);
  }
}

}  // namespace
