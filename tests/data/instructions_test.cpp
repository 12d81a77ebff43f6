// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/instructions.hpp>

#include <doctest/doctest.h>

#include "scratch_file.hpp"
#include "support/fault_case.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

using namespace superoffload;
using namespace superoffload::data;

namespace {

std::filesystem::path const malformed = SUPEROFFLOAD_TEST_DATA "/malformed/dataset";

using file_of = testing::scratch_file;

std::string complaint(std::filesystem::path const& file, row_limits const& limits = {},
                      exit_code code = exit_code::bad_input) {
  try {
    read_instructions(file, limits);
  } catch (error const& e) {
    CHECK(e.code() == code);
    std::string const message = e.what();
    CHECK(message.find('\n') == message.npos);
    CHECK(message.starts_with(file.string()));
    return message.substr(std::min(message.size(), file.string().size()));
  }
  return "no error";
}

TEST_CASE("the Alpaca sample") {
  auto const rows = read_instructions(SUPEROFFLOAD_TEST_DATA "/../../examples/data/alpaca_en_demo.json");
  REQUIRE(rows.size() == 999);
  CHECK(rows[0].instruction == "Describe a process of making crepes.");
  CHECK(rows[0].output.starts_with("Making crepes"));
  CHECK(std::count_if(rows.begin(), rows.end(), [](auto const& row) { return !row.input.empty(); }) == 412);
}

TEST_CASE("a list and lines mean the same, whatever the file's name, line ends and mark") {
  std::string const one = R"({"instruction": "a\n\"}{][", "input": null, "output": "", "text": [{}, 1.5]})";
  std::string const two = R"({"output": "é\u00e9", "input": "i\\", "instruction": ""})";
  std::string const mark = "\xEF\xBB\xBF";
  for (auto const& text : {"[" + one + "," + two + "]", "\n [\r\n" + one + "\r\n,\t" + two + "]\r\n",
                           mark + "[" + one + "," + two + "]", one + "\n" + two, one + "\n" + two + "\n",
                           mark + one + "\r\n\r\n  \n" + two + "\r\n", "\n\t" + one + " \n" + two + "\n\n"}) {
    CAPTURE(text);
    auto const rows = read_instructions(file_of{text}.path());
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].instruction == "a\n\"}{][");
    CHECK(rows[0].input.empty());
    CHECK(rows[0].output.empty());
    CHECK(rows[1].instruction.empty());
    CHECK(rows[1].input == "i\\");
    CHECK(rows[1].output == "éé");
  }
}

TEST_CASE("malformed data sets are refused with file, line and field") {
  struct expectation {
    char const* file;
    char const* message;  ///< how the complaint goes on after the file's name
  };
  std::size_t seen = 0;
  for (auto const& expected : {
           expectation{"empty.json", ": the data set is empty"},
           {"blank.jsonl", ": the data set is empty"},
           {"mark_only.json", ": the data set is empty"},
           {"empty_list.json", ": the data set is empty"},
           {"row_is_number.json", ":3: row 2: expected an object, found '7"},
           {"row_is_list.jsonl", ":2: expected an object, found \"text\""},
           {"instruction_missing.json", ":2: field 'instruction' is missing"},
           {"output_missing.jsonl", ":3: field 'output' is missing"},
           {"instruction_null.jsonl", ":1: instruction: expected a string, found null"},
           {"output_number.jsonl", ":3: output: expected a string, found 2"},
           {"output_list.json", ":2: output: expected a string, found array"},
           {"input_number.json", ":4: input: expected a string, found 4"},
           {"truncated_line.jsonl", ":2: byte 35: expected valid JSON in UTF-8"},
           {"truncated_list.json", ":3: row 2: the object that begins here has no end"},
           {"list_without_end.json", ":3: expected ',' or ']' after row 1, found the end of the file"},
           {"comma_missing.json", ":3: expected ',' or ']' after row 1, found '{"},
           {"comma_at_end.json", ":3: row 2: expected an object, found ']"},
           {"text_after_list.json", ":4: expected nothing after the list, found '[]"},
           {"two_objects_on_a_line.jsonl", ":1: byte 51: expected valid JSON"},
           {"object_over_lines.jsonl", ":1: an object that goes over several lines"},
           {"not_json.jsonl", ":1: byte 1: expected valid JSON"},
           {"field_twice.jsonl", ":1: field 'instruction' appears twice"},
           {"invalid_utf8.jsonl", ":2: byte 22: expected valid JSON in UTF-8"},
           {"lone_surrogate.json", ":2: byte 24: expected valid JSON in UTF-8"},
           {"zero_byte.jsonl", ":1: byte 19: expected valid JSON"},
           {"control_character.json", ":1: byte 19: expected valid JSON in UTF-8, found '\"a<U+001B>'"},
           {"mark_inside.jsonl", ":2: a byte order mark inside the file"},
           {"utf16.json", ":1: byte 4: expected valid JSON in UTF-8, found a zero byte"},
           {"too_deep.jsonl", ":1: nested deeper than 32 levels"},
           {"brackets.json", ":1: row 1: expected an object, found '[["},
           {"closing_first.json", ":1: row 1: expected an object, found '} ]"},
           {"comment.json", ":2: row 1: expected an object, found '// the greeting"},
           {"single_quotes.jsonl", ":1: byte 2: expected valid JSON"},
           {"not_a_number.jsonl", ":1: byte 32: expected valid JSON"},
           {"mismatched.json", ":2: byte 35: expected valid JSON"},
       }) {
    std::string const file = expected.file;
    CAPTURE(file);
    test::fault_case const refused{"F22"};
    auto const found = complaint(malformed / file);
    CHECK_MESSAGE(found.starts_with(expected.message), found);
    ++seen;
  }
  auto const files = std::filesystem::directory_iterator{malformed};
  CHECK(seen == static_cast<std::size_t>(std::distance(begin(files), end(files))));
}

TEST_CASE("what is no regular file") {
  CHECK(complaint(malformed / "none.json").starts_with(": cannot be opened"));
  CHECK(complaint(malformed).starts_with(": is no regular file; expected a data set"));
  CHECK(complaint("/dev/null").starts_with(": is no regular file"));
}

TEST_CASE("bounds hold at their edges") {
  std::string const row = R"({"instruction":"abc","output":"defg"})";
  row_limits limits;
  limits.row_bytes = row.size();
  for (auto const& text : {row, row + "\n", row + "\n" + row, "[" + row + "]"}) {
    CAPTURE(text);
    CHECK(complaint(file_of{text}.path(), limits) == "no error");
  }
  limits.row_bytes = row.size() - 1;
  CHECK(complaint(file_of{row}.path(), limits).starts_with(":1: a line longer than 36 bytes"));
  CHECK(complaint(file_of{"\n" + row + "\n"}.path(), limits).starts_with(":2: a "));
  CHECK(complaint(file_of{"[\n" + row + "]"}.path(), limits).starts_with(":2: a row longer than 36 bytes"));
  limits = {};
  limits.rows = 2;
  CHECK(complaint(file_of{row + "\n" + row + "\n"}.path(), limits) == "no error");
  CHECK(complaint(file_of{row + "\n" + row + "\n" + row}.path(), limits).starts_with(":3: more than 2 rows"));
  limits = {};
  for (auto const& text : {"[" + row + "]", row + "\n" + row}) {
    limits.bytes = text.size();
    CHECK(complaint(file_of{text}.path(), limits) == "no error");
    CHECK(complaint(file_of{text + " "}.path(), limits)
              .starts_with(": " + std::to_string(text.size() + 1) + " bytes, expected at most " +
                           std::to_string(text.size()) + "; split"));
  }
}

TEST_CASE("every truncation of a data set is refused or shorter") {
  std::string const row = R"({"instruction":"a{\"","input":"[","output":"\u00e9"})";
  for (auto const& whole : {"[" + row + "," + row + "]", row + "\n" + row}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      file_of const file{std::string_view{whole}.substr(0, size)};
      bool const complete_line = whole[0] == '{' && (size == row.size() || size == row.size() + 1);
      CAPTURE(whole.substr(0, size));
      CHECK((complaint(file.path()) == "no error") == complete_line);
    }
  }
}

}  // namespace
