// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/source.hpp>

#include <doctest/doctest.h>

#include "scratch_file.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using namespace superoffload;
using namespace superoffload::data;

namespace {

namespace fs = std::filesystem;

TEST_CASE("a weight follows the last colon") {
  auto const check = [](char const* text, char const* path, std::optional<double> weight) {
    CAPTURE(std::string{text});
    auto const parsed = parse_source(text);
    CHECK(parsed.path == path);
    CHECK(parsed.weight == weight);
  };
  check("a.jsonl", "a.jsonl", std::nullopt);
  check("a.jsonl:0.7", "a.jsonl", 0.7);
  check("d/a:b.jsonl:3", "d/a:b.jsonl", 3.0);
  check("a:b.jsonl", "a:b.jsonl", std::nullopt);
  check("a.jsonl:", "a.jsonl:", std::nullopt);
  check("a.jsonl:0.7x", "a.jsonl:0.7x", std::nullopt);
  for (auto const* const wrong : {"a:0", "a:-1", "a:nan", "a:inf", "a:1e10"}) {
    CAPTURE(std::string{wrong});
    CHECK_THROWS_AS(parse_source(wrong), error);
  }
  testing::scratch_file const file{"x"};
  auto const named = file.path().parent_path() / "a:1";
  std::ofstream{named} << "x";
  CHECK(parse_source(named.native()).path == named);
  CHECK(!parse_source(named.native()).weight);
}

TEST_CASE("a directory is its shards in the order of their names") {
  testing::scratch_file const file{"x"};
  auto const directory = file.path().parent_path();
  auto const complaint = [&] {
    try {
      files_of(directory);
    } catch (error const& e) {
      CHECK(e.code() == exit_code::bad_input);
      return std::string{e.what()};
    }
    return std::string{"no error"};
  };
  CHECK(complaint().starts_with(directory.string() +
                                ": a directory without data; expected files .json or .jsonl"));
  for (char const* const name :
       {"c.json.gz", "b.jsonl", "a.json", "d.jsonl.zst", ".e.json", "f.txt", "g.gz", "h.parquet", "i.csv"}) {
    std::ofstream{directory / name} << "x";
  }
  fs::create_directory(directory / "z");
  CHECK(files_of(directory) == std::vector<fs::path>{directory / "a.json", directory / "b.jsonl",
                                                     directory / "c.json.gz", directory / "d.jsonl.zst",
                                                     directory / "h.parquet", directory / "i.csv"});
  CHECK(files_of(file.path()) == std::vector{file.path()});
  CHECK(files_of("/absent") == std::vector<fs::path>{"/absent"});
}

TEST_CASE("a link in a data set's directory does not choose which file is read") {
  testing::scratch_file const outside{"x"}, inside{"x"};
  auto const directory = inside.path().parent_path() / "set";
  fs::create_directory(directory);
  fs::create_symlink(outside.path(), directory / "a.jsonl");
  try {
    files_of(directory);
    FAIL("expected an error");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    CHECK(std::string_view{e.what()}.find("a.jsonl: is a symbolic link to " + outside.path().string()) !=
          std::string_view::npos);
  }
  CHECK(files_of(directory, true) == std::vector<fs::path>{directory / "a.jsonl"});
  // What the user names is followed, and so is a link inside of the directory.
  CHECK(files_of(directory / "a.jsonl") == std::vector<fs::path>{directory / "a.jsonl"});
  fs::remove(directory / "a.jsonl");
  std::ofstream{directory / "b.jsonl"} << "x";
  fs::create_symlink("b.jsonl", directory / "a.jsonl");
  CHECK(files_of(directory).size() == 2);
}

}  // namespace
