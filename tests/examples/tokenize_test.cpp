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

TEST_CASE("the rows of a data set become ids and a mask of what is learnt") {
  command const c;
  auto const model = (tokenizers / "llama3").string();
  auto const rows =
      write_file(c.root.path() / "rows.jsonl",
                 "{\"prompt\": \"a\", \"completion\": \" b\"}\n{\"prompt\": \"\", \"completion\": \"c\"}\n");
  words const flags{"--model", model, "--dataset", rows.string(), "--append-eos", "off"};
  auto const printed = c.run(flags, "");
  CHECK(printed.status == 0);
  CHECK(printed.err == rows.string() + ": rows of format prompt_completion\n");
  CHECK(printed.out == "{\"ids\": [548,64,284], \"mask\": [0,0,1]}\n{\"ids\": [548,66], \"mask\": [0,1]}\n");
  auto const output = (c.root.path() / "ids.jsonl").string();
  auto to_file = flags;
  to_file.insert(to_file.end(), {"--format", "prompt_completion", "--output", output});
  auto const written = c.run(to_file, "");
  CHECK(written.err.empty());
  CHECK(written.out.empty());
  CHECK(contents_of(output) == printed.out);
  auto renamed = flags;
  renamed.insert(renamed.end(), {"--columns", "completion=reply"});
  check_rejected(c.run(renamed, ""), exit_code::bad_input, {rows.string() + ":1", "'prompt' without 'reply'"},
                 "tokenize");
}

TEST_CASE("rows and flags that do not fit are rejected") {
  command const c;
  auto const rows = write_file(c.root.path() / "rows.jsonl", "{\"text\": \"a\"}\n{\"text\": 7}\n").string();
  auto const check = [&](words more, words const& says) {
    more.insert(more.begin(), {"--model", (tokenizers / "llama3").string()});
    CAPTURE(more.back());
    check_rejected(c.run(more, ""), exit_code::bad_input, says, "tokenize");
  };
  check({"--dataset", rows}, {rows + ":2: text: expected a string, found 7"});
  check({"--dataset", rows, "--format", "alpaca"}, {rows + ":1", "field 'instruction' is missing"});
  check({"--dataset", rows, "--format", "chat"}, {"--format is 'chat', expected auto|alpaca|messages"});
  check({"--dataset", rows, "--columns", "text"}, {"--columns", "FIELD=NAME"});
  check({"--dataset", rows, "--output", rows}, {"--output is '", "which is the data set"});
  check({"--dataset", rows, "--no_special"}, {"--no_special is for texts"});
  check({"--format", "text"}, {"--format needs --dataset"});
  check({"--dataset", "/absent.json"}, {"/absent.json", "cannot be opened"});
  auto const ids = write_file(c.root.path() / "ids.jsonl", "{\"input_ids\": [1, 128256]}\n").string();
  check({"--dataset", ids}, {ids + ":1: input_ids[1]: expected an integer from 0 to 559, found 128256"});
}

TEST_CASE("--show prints rows with what is learnt marked, and no control characters") {
  command const c;
  auto const rows = write_file(c.root.path() / "rows.jsonl",
                               "{\"prompt\": \"a\\nb\", \"completion\": \" \\u001b[31mc\"}\n"
                               "{\"prompt\": \"\", \"completion\": \"c\"}\n{\"prompt\": 7}\n")
                        .string();
  words const flags{"--model", (tokenizers / "llama3").string(), "--dataset", rows, "--show"};
  auto const with = [&](words more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return c.run(more, "");
  };
  auto const done = with({"1", "--append_eos", "off"});
  CAPTURE(done.out);
  CHECK(done.status == 0);
  CHECK(done.out.starts_with("--- " + rows + ":1: "));
  CHECK(done.out.find("a\\n\nb[[ \\x1b[31mc]]\n") != std::string::npos);
  CHECK(done.out.find("rows.jsonl:2") == std::string::npos);
  CHECK(with({"1", "--max_length", "3", "--append_eos", "off"}).out.find("3 tokens, cut from") !=
        std::string::npos);
  check_rejected(with({"3"}), exit_code::bad_input, {rows + ":3: prompt: expected a string, found 7"},
                 "tokenize");
  check_rejected(with({"0"}), exit_code::bad_input, {"--show"}, "tokenize");
}

TEST_CASE("--stats prints lengths, what is learnt, and which rows are cut") {
  command const c;
  std::string text;
  for (int i = 0; i < 30; ++i) {
    text += concat("{\"input_ids\": [1", std::string(static_cast<std::size_t>(i) * 2, ' '));
    for (int k = 0; k < i; ++k) { text += ",2"; }
    text += "]}\n";
  }
  auto const rows = write_file(c.root.path() / "rows.jsonl", text).string();
  auto const done = c.run(
      {"--model", (tokenizers / "llama3").string(), "--dataset", rows, "--stats", "--max_length", "20"}, "");
  CAPTURE(done.out);
  CAPTURE(done.err);
  CHECK(done.status == 0);
  // Lengths 1 to 20, and ten times 20 for what is longer.
  for (std::string const line :
       {"rows            30\n", "tokens          410\n", "learnt          380 tokens, 92.7 %\n",
        "length          mean 14, median 16, longest 20\n", "   1 to  2 ######## 2\n",
        "  19 to 20 ################################################## 12\n", " sequences of 20 tokens\n",
        "cut             to 20 tokens, 55 are lost: 10 rows: "}) {
    CAPTURE(line);
    CHECK(done.out.find(line) != std::string::npos);
  }
  CHECK(done.out.find(rows + ":21, " + rows + ":22, ") != std::string::npos);
  CHECK(done.out.find(rows + ":25, ...\n") != std::string::npos);
  CHECK(done.out.find("nothing learnt  1 row: " + rows + ":1\n") != std::string::npos);
}

TEST_CASE("several data sets and directories of shards") {
  command const c;
  fs::create_directory(c.root.path() / "set");
  write_file(c.root.path() / "set" / "b.jsonl", "{\"input_ids\": [2]}\n");
  write_file(c.root.path() / "set" / "a.json", "[{\"input_ids\": [1]}]");
  auto const text = write_file(c.root.path() / "text.jsonl", "{\"text\": \"a\"}\n").string();
  auto const done = c.run({"--model", (tokenizers / "llama3").string(), "--append_eos", "off", "--dataset",
                           (c.root.path() / "set").string() + ":2", "--dataset", text + ":1"},
                          "");
  CHECK(
      done.out ==
      "{\"ids\": [1], \"mask\": [1]}\n{\"ids\": [2], \"mask\": [1]}\n{\"ids\": [548,64], \"mask\": [1,1]}\n");
  auto const set = (c.root.path() / "set").string();
  CHECK(done.err == set + ": rows of format tokenized\n" + text + ": rows of format text\nnote: " + set +
                        "/a.json:1: nothing is learnt in this row; the first of 2 such rows\n");
}

}  // namespace
