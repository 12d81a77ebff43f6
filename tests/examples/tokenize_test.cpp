// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "examples/rejection.hpp"

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

fs::path const tokenize = SUPEROFFLOAD_TOKENIZE;
fs::path const tokenizers = fs::path{SUPEROFFLOAD_TEST_DATA} / "tokenizers";

struct command {
  scratch_directory root;
  [[nodiscard]] outcome run(words const& flags, std::string const& input) const {
    return program{tokenize, flags, [] { ::alarm(60); }, write_file(root.path() / "input", input)}.wait();
  }
  void check(std::string const& input, words const& says) const {
    check_rejected(run({"--model", (tokenizers / "llama3").string()}, input), exit_code::bad_input, says,
                   "tokenize");
  }
};

TEST_CASE("the program turns a string a line into a list of ids a line, as the reference does") {
  command const c;
  for (std::string const family : {"llama3", "phi4", "qwen3", "seed_oss", "gpt_oss"}) {
    CAPTURE(family);
    auto const cases = io::json::parse(contents_of(tokenizers / family / "tokenizer_cases.json"));
    for (bool const special : {true, false}) {
      std::string input, expected;
      for (auto const& one : cases["cases"]) {
        input += one["text"].dump() + "\n";
        bool const differs = !one["ids_no_special"].is_null();
        expected += one[special || !differs ? "ids" : "ids_no_special"].dump() + "\n";
      }
      words flags{"--model", (tokenizers / family).string()};
      if (!special) {
        flags.push_back("--no_special");
      }
      auto const done = c.run(flags, input);
      CAPTURE(done.err);
      CHECK(done.status == 0);
      CHECK(done.err.empty());
      CHECK(done.out == expected);
    }
  }
}

TEST_CASE("lines may end with a carriage return, and the last one with nothing; no line makes none") {
  command const c;
  words const flags{"--model", (tokenizers / "llama3").string(), "--no-special"};
  auto const once = c.run(flags, "\"a\"\n").out;
  CHECK(once.ends_with("]\n"));
  CHECK(c.run(flags, "\"a\"\r\n\"a\"").out == once + once);
  CHECK(c.run(flags, "").out.empty());
  CHECK(c.run(flags, "\"\"\n").out == "[]\n");
}

TEST_CASE("a line that is no string is rejected by its number, after the lines before it") {
  command const c;
  c.check("\"a\"\n7\n", {"line 2", "expected a string"});
  c.check("\"a\"\n\n\"b\"\n", {"line 2", "expected valid JSON"});
  c.check("[\"a\"]\n", {"line 1", "expected a string"});
  c.check("\"a\n", {"line 1", "expected valid JSON"});
  c.check("\"\xff\"\n", {"line 1", "UTF-8"});
  c.check("\"\\ud800\"\n", {"line 1"});
  c.check("\"a\" \"b\"\n", {"line 1", "expected valid JSON"});
  c.check("[[[[\n", {"line 1"});
  c.check(std::string{"\"a\0\"\n", 5}, {"line 1", "zero byte"});
  c.check("\"" + std::string(17 << 20, 'a') + "\"\n", {"line 1", "longer than 16777216"});
  auto const done = c.run({"--model", (tokenizers / "llama3").string()}, "\"a\"\n7\n");
  CHECK(std::ranges::count(done.out, '\n') == 1);
}

TEST_CASE("a command line without a tokenizer, or with unknown flags, is rejected") {
  command const c;
  check_rejected(c.run({}, ""), exit_code::bad_input, {"--model"}, "tokenize");
  check_rejected(c.run({"--model"}, ""), exit_code::bad_input, {"--model"}, "tokenize");
  check_rejected(c.run({"--model", c.root.path(), "--fast"}, ""), exit_code::bad_input, {"--fast", "--help"},
                 "tokenize");
  check_rejected(c.run({"--model", c.root.path()}, ""), exit_code::bad_input,
                 {(c.root.path() / "tokenizer.json").string(), "No such file"}, "tokenize");
  write_file(c.root.path() / "tokenizer.json", "{}");
  check_rejected(c.run({"--model", c.root.path()}, ""), exit_code::bad_input, {"tokenizer.json", "missing"},
                 "tokenize");
  auto const help = c.run({"--help"}, "");
  CHECK(help.status == 0);
  CHECK(help.out.find("--no_special") != std::string::npos);
}

}  // namespace
