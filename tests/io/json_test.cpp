// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/json.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "scratch_directory.hpp"

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;
using namespace std::string_view_literals;

namespace {

error parsing(std::string_view text, json_limits limits = {}) {
  return failure_of([&] { parse_json(text, "f.json", limits); });
}

}  // namespace

TEST_CASE("strict JSON only") {
  CHECK(parse_json(R"( {"a": [1, -2.5e3, true, null, "\u00e9"]} )", "f.json").dump() ==
        "{\"a\":[1,-2500.0,true,null,\"\xC3\xA9\"]}");
  for (auto const text : {""sv,
                          " "sv,
                          "{"sv,
                          "[1,]"sv,
                          "{\"a\":1,}"sv,
                          "01"sv,
                          "+1"sv,
                          ".5"sv,
                          "1."sv,
                          "NaN"sv,
                          "Infinity"sv,
                          "'a'"sv,
                          "\"\n\""sv,
                          "\"\xC3\""sv,
                          "\"\xED\xA0\x80\""sv,
                          "\"\\ud800\""sv,
                          "//\n1"sv,
                          "1 2"sv,
                          "1\0"sv,
                          "[1]\0[2]"sv,
                          "\"a\0b\""sv,
                          "1e999"sv}) {
    CAPTURE(text);
    check_failure(parsing(text), exit_code::bad_input, "f.json: byte ");
  }
}

TEST_CASE("names are unique at every level") {
  check_failure(parsing(R"([{"a": 1, "b": {"a": 1}}, {"c": {"d": 1, "d": 2}}])"), exit_code::bad_input,
                "f.json: field 'd' appears twice");
  CHECK(parsing(R"([{"a": 1, "b": {"a": 1}}, {"a": 1}])").code() == exit_code::ok);
}

TEST_CASE("limits hold exactly") {
  CHECK(parsing("[[1]]", {.depth = 2}).code() == exit_code::ok);
  check_failure(parsing("[[[1]]]", {.depth = 2}), exit_code::bad_input, "deeper than 2");
  check_failure(parsing(std::string(1 << 20, '[')), exit_code::bad_input, "deeper than 32");
  CHECK(parsing("[1,2]", {.bytes = 5}).code() == exit_code::ok);
  check_failure(parsing("[1,2]", {.bytes = 4}), exit_code::bad_input, "5 bytes of JSON, expected at most 4");
  CHECK(parsing("[1,2]", {.commas = 1}).code() == exit_code::ok);
  check_failure(parsing("[1,2]", {.commas = 0}), exit_code::bad_input, "1 commas, expected at most 0");
}

TEST_CASE("a field's errors name file and path") {
  auto const document = parse_json(
      R"({"a": {"b": [1, -1, 1.5, "x", null, true, 18446744073709551615]}, "n\u0001": 0})", "f.json");
  json_field const root{document, "f.json"};
  auto const list = root["a"]["b"];
  CHECK(list[0].integer(1, 1) == 1);
  CHECK(list[1].integer(-5, 5) == -1);
  CHECK(list[2].number(0, 2) == 1.5);
  CHECK(list[3].text() == "x");
  CHECK(list[5].boolean());
  CHECK(root.has("a"));
  CHECK(!root.has("b"));
  check_failure(failure_of([&] { return list[1].integer(0, 9); }), exit_code::bad_input,
                "f.json: a.b[1]: expected an integer from 0 to 9, found -1");
  check_failure(failure_of([&] { return list[6].integer(0, 9); }), exit_code::bad_input,
                "f.json: a.b[6]: expected an integer");
  check_failure(failure_of([&] { return list[2].integer(0, 9); }), exit_code::bad_input,
                "f.json: a.b[2]: expected an integer, found 1.5");
  check_failure(failure_of([&] { return list[2].number(0, 1); }), exit_code::bad_input,
                "f.json: a.b[2]: expected a number from 0 to 1");
  check_failure(failure_of([&] { return list[3].number(0, 1); }), exit_code::bad_input,
                "f.json: a.b[3]: expected a number, found \"x\"");
  check_failure(failure_of([&] { return list[0].boolean(); }), exit_code::bad_input,
                "f.json: a.b[0]: expected true or false");
  check_failure(failure_of([&] { return list[4].text(); }), exit_code::bad_input,
                "f.json: a.b[4]: expected a string, found null");
  check_failure(failure_of([&] { return list[7].text(); }), exit_code::bad_input,
                "f.json: a.b: expected an array with more than 7");
  check_failure(failure_of([&] { return root["a"]["c"].text(); }), exit_code::bad_input,
                "f.json: a: field 'c' is missing");
  check_failure(failure_of([&] { return root["a"].require_array(); }), exit_code::bad_input,
                "f.json: a: expected an array, found object");
  check_failure(failure_of([&] { list.require_object(); }), exit_code::bad_input,
                "f.json: a.b: expected an object, found array");
  check_failure(failure_of([&] { return root["n\x01"].text(); }), exit_code::bad_input,
                "f.json: n\\x01: expected a string");
}

TEST_CASE("a file is read within its limits") {
  scratch_directory const directory;
  write_text(directory / "f.json", "[1]");
  CHECK(read_json(directory / "f.json").size() == 1);
  check_failure(failure_of([&] { read_json(directory / "f.json", {.bytes = 2}); }), exit_code::bad_input,
                "/f.json: 3 bytes, expected at most 2");
  check_failure(failure_of([&] { read_json(directory / "g.json"); }), exit_code::bad_input, "/g.json",
                "No such file");
}
