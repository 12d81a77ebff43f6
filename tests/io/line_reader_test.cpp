// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/line_reader.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "faults.hpp"
#include "scratch_directory.hpp"

#include <string>
#include <vector>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

std::vector<std::string> lines_of(std::filesystem::path const& file) {
  line_reader reader{file};
  std::vector<std::string> lines;
  while (auto line = reader.next()) { lines.push_back(*std::move(line) + (reader.ended() ? "\n" : "")); }
  return lines;
}

}  // namespace

TEST_CASE("a file is its lines, of any length, the last one with or without its end") {
  scratch_directory const directory;
  std::string const lengthy(200'000, 'x');
  for (std::vector<std::string> const& lines : {std::vector<std::string>{},
                                                {"a\n"},
                                                {"a"},
                                                {"\n"},
                                                {"\n", "\n", "a"},
                                                {lengthy + "\n", "b\n", lengthy},
                                                {std::string(65535, 'y') + "\n", "z\n"},
                                                {std::string(65536, 'y') + "\n", "z"}}) {
    std::string text;
    for (auto const& line : lines) { text += line; }
    write_text(directory / "f", text);
    CHECK(lines_of(directory / "f") == lines);
  }
}

TEST_CASE("a signal interrupts no reading of lines") {
  scratch_directory const directory;
  write_text(directory / "f", "a\nb\n");
  for (long at = 0; at < 2; ++at) {
    CAPTURE(at);
    injection const interrupted{{.at = at, .with = EINTR}};
    CHECK(lines_of(directory / "f") == std::vector<std::string>{"a\n", "b\n"});
    CHECK(injection::seen() > at);
  }
}

TEST_CASE("a line that is too long is refused, and so is a file that is none") {
  scratch_directory const directory;
  write_text(directory / "f", std::string((std::size_t{16} << 20) + 1, 'x'));
  check_failure(failure_of([&] { lines_of(directory / "f"); }), exit_code::bad_input, "/f",
                "more than 16777216 bytes");
  check_failure(failure_of([&] { lines_of(directory / "absent"); }), exit_code::bad_input, "No such file");
  check_failure(failure_of([&] { lines_of(directory.path()); }), exit_code::bad_input, "regular file");
}
