// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/reports/report_choice.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <filesystem>
#include <fstream>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;

TEST_CASE("a list of reports is read by name, and what is none is named") {
  auto const some = train::parse_report_choice("html,jsonl");
  CHECK(some.html);
  CHECK(some.jsonl);
  CHECK_FALSE(some.tensorboard);
  CHECK(train::parse_report_choice("tensorboard").tensorboard);
  CHECK_FALSE(train::parse_report_choice("none").any());
  for (char const* const wrong : {"", "html,", "mlflow", "html,none", " html", "html;jsonl"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS(train::parse_report_choice(wrong), doctest::Contains("expected none, or some of"),
                         error);
  }
}

TEST_CASE("reports are files of their own names, and nothing else is removed with them") {
  test::scratch_directory const directory;
  train::report_files const files{directory.path()};
  CHECK(files.existing().empty());
  fs::create_directories(files.events);
  for (auto const& file : {files.lines, files.page, files.events / "events.out.tfevents.1.host.2",
                           files.events / "mine", files.directory / "notes.txt"}) {
    std::ofstream{file} << "x";
  }
  fs::create_directories(files.wandb / "offline-run-20260101_000000-0123456789abcdef");
  fs::create_directories(files.wandb / "mine");
  CHECK(files.existing().size() == 4);
  files.remove();
  CHECK(files.existing().empty());
  CHECK(fs::exists(files.events / "mine"));
  CHECK(fs::exists(files.wandb / "mine"));
  CHECK(fs::exists(files.directory / "notes.txt"));
}

TEST_CASE("reports are not written through links") {
  test::scratch_directory const directory, elsewhere;
  train::report_files const files{directory.path()};
  CHECK_NOTHROW(files.expect_writable());
  fs::create_directory_symlink(elsewhere.path(), files.directory);
  CHECK_THROWS_WITH_AS(files.expect_writable(), doctest::Contains("is no directory"), error);
  std::ofstream{files.page} << "x";  // somebody else's
  files.remove();
  CHECK(fs::exists(elsewhere.path() / "report.html"));
  fs::remove(files.directory);
  fs::create_directory(files.directory);
  std::ofstream{elsewhere.path() / "page"} << "x";
  fs::create_symlink(elsewhere.path() / "page", files.page);
  CHECK_THROWS_AS(files.expect_writable(), error);
}

}  // namespace
