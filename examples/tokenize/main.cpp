// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// tokenize --model DIR [--no_special] < texts.jsonl: one JSON string a line in, one JSON list of ids a line
// out.
#include <superoffload/cli/program.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

constexpr std::size_t longest_line = std::size_t{16} << 20;

/// The next line without its end; nothing at the end of the input.
std::optional<std::string> read_line(std::streambuf& in, std::string const& where) {
  using traits = std::streambuf::traits_type;
  std::string line;
  auto c = in.sbumpc();
  if (c == traits::eof()) {
    return std::nullopt;
  }
  for (; c != traits::eof() && c != '\n'; c = in.sbumpc()) {
    expect(line.size() < longest_line, exit_code::bad_input, where, ": longer than ", longest_line,
           " bytes; expected shorter lines");
    line += traits::to_char_type(c);
  }
  return line;
}

void write_ids(std::vector<std::int32_t> const& ids) {
  std::string out = "[";
  for (auto const id : ids) { out += out.size() == 1 ? concat(id) : concat(',', id); }
  out += "]\n";
  expect_call(std::fwrite(out.data(), 1, out.size(), stdout) == out.size(), exit_code::io_failure,
              "standard output: writing failed");
}

void tokenize(std::string const& model, bool add_special) {
  auto const tokenizer = text::tokenizer::load(model);
  std::vector<std::int32_t> ids;
  for (std::size_t number = 1;; ++number) {
    auto const where = concat("line ", number);
    auto const line = read_line(*std::cin.rdbuf(), where);
    if (!line) {
      break;
    }
    auto const document = io::parse_json(*line, where, {.bytes = longest_line, .depth = 1});
    ids.clear();
    tokenizer.encode(io::json_field{document, where}.text(), ids, add_special);
    write_ids(ids);
  }
  expect_call(std::fflush(stdout) == 0, exit_code::io_failure, "standard output: writing failed");
}

int tokenize(int argc, char** argv) {
  CLI::App app{"Turns texts into token ids: one JSON string a line in, one JSON list of ids a line out.",
               "tokenize"};
  app.set_version_flag("--version", cli::version_line("tokenize"), "Print the version and exit");
  std::string model;
  bool no_special = false;
  app.add_option("--model", model, "directory with tokenizer.json")->type_name("DIR")->required();
  app.add_flag("--no_special,--no-special", no_special,
               "leave out what the post-processor adds, such as a BOS");
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& asked) { return app.exit(asked); } catch (CLI::ParseError const& e) {
    fail(exit_code::bad_input, e.what(), "; see --help");
  }
  std::ios::sync_with_stdio(false);
  tokenize(model, !no_special);
  return static_cast<int>(exit_code::ok);
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_program(
      "tokenize", [](int count, char** arguments) { return tokenize(count, arguments); }, argc, argv);
}
