// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/row_format.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace superoffload;
using namespace superoffload::data;

namespace {

std::string told(std::string const& text, column_names const& columns = {}) {
  try {
    return std::string{name_of(format_of(row{text, "rows.jsonl:3"}, columns, 32))};
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    return e.what();
  }
}

TEST_CASE("the fields of the first row tell the format") {
  CHECK(told(R"({"instruction": "a", "output": "b", "text": "c"})") == "alpaca");
  CHECK(told(R"({"prompt": "a", "messages": []})") == "messages");
  CHECK(told(R"({"id": 1, "conversations": []})") == "sharegpt");
  CHECK(told(R"({"prompt": "a", "completion": "b"})") == "prompt_completion");
  CHECK(told(R"({"text": "c"})") == "text");
  CHECK(told(R"({"text": "c", "input_ids": [1]})") == "tokenized");
}

TEST_CASE("a first row of no format names its fields, and what was expected") {
  auto const other = told(R"({"question": "a", "answer": "b"})");
  CHECK(
      other.starts_with("rows.jsonl:3: no format has the fields 'answer', 'question'; expected instruction"));
  CHECK(other.find("--columns") != other.npos);
  CHECK(told(R"({"data": [{"instruction": "a", "output": "b"}]})")
            .starts_with("rows.jsonl:3: the rows are in the field 'data', expected them as one list"));
  CHECK(told("{}").starts_with("rows.jsonl:3: no format has the fields of {}"));
  CHECK(told("[]").starts_with("rows.jsonl:3: expected an object"));
  CHECK(told("{").starts_with("rows.jsonl:3: byte 2: expected valid JSON"));
  std::string many = "{";
  for (int i = 0; i < 500; ++i) { many += concat(i == 0 ? "" : ",", "\"\\u001b", i, "\": 0"); }
  auto const shown = told(many + "}");
  CHECK(shown.size() < 600);
  CHECK(shown.find('\x1b') == shown.npos);
  CHECK(told(R"({"question": "a", "answer": "b"})", {{"instruction", "question"}, {"output", "answer"}}) ==
        "alpaca");
  CHECK(told(R"({"text": "a"})", {{"text", "body"}}).starts_with("rows.jsonl:3: no format"));
}

TEST_CASE("a first row with half of a format names its fields, and how to rename one") {
  CHECK(told(R"({"instruction": "a", "context": "b", "response": "c"})") ==
        "rows.jsonl:3: 'instruction' without 'output'; the row has 'context', 'instruction', 'response'; "
        "name the one meant with --columns output=NAME");
  CHECK(told(R"({"instruction": "a", "response": "c"})", {{"output", "response"}}) == "alpaca");
  CHECK(told(R"({"instruction": "a", "output": "c"})", {{"output", "response"}})
            .starts_with(
                "rows.jsonl:3: 'instruction' without 'response'; the row has 'instruction', 'output'"));
  CHECK(told(R"({"prompt": "a", "chosen": "b", "rejected": "c"})")
            .starts_with("rows.jsonl:3: 'prompt' without 'completion'; the row has 'chosen'"));
  CHECK(told(R"({"completion": "b"})").starts_with("rows.jsonl:3: 'completion' without 'prompt'"));
}

std::string parsed(std::string_view text) {
  try {
    return to_text(parse_columns(text));
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    return e.what();
  }
}

TEST_CASE("columns are renamed field by field") {
  CHECK(parsed("output=answer,instruction=question") == "instruction=question,output=answer");
  CHECK(parsed("text=a=b") == "text=a=b");
  CHECK(
      parsed("question=instruction").starts_with("--columns: 'question' is no field of a format; expected"));
  CHECK(parsed("output").starts_with("--columns: 'output', expected FIELD=NAME"));
  CHECK(parsed("output=").starts_with("--columns: 'output=', expected FIELD=NAME"));
  CHECK(parsed("output=a,,text=b").starts_with("--columns: '', expected FIELD=NAME"));
  CHECK(parsed("output=a,output=b").starts_with("--columns: 'output' appears twice"));
}

}  // namespace
