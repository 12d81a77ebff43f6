// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/directory.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "faults.hpp"
#include "scratch_directory.hpp"

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

namespace fs = std::filesystem;
using names = std::vector<std::string>;

void make_with_file(std::filesystem::path const& path, std::string_view content) {
  std::filesystem::create_directory(path);
  write_text(path / "f", content);
}

}  // namespace

TEST_CASE("directories are created with their parents, and listed sorted") {
  scratch_directory const directory;
  make_directories(directory / "a/b/c");
  make_directories(directory / "a/b/c");
  make_directories(directory / "a/d/");
  write_text(directory / "a/a", "");
  CHECK(list_directory(directory / "a") == names{"a", "b", "d"});
  CHECK(list_directory(directory / "absent").empty());
  check_failure(failure_of([&] { make_directories(directory / "a/a/b"); }), exit_code::io_failure, "/a/a");
  check_failure(failure_of([&] { list_directory(directory / "a/a"); }), exit_code::io_failure, "/a/a");
  check_failure(failure_of([&] { sync_directory(directory / "absent"); }), exit_code::io_failure, "/absent");
}

TEST_CASE("removing a tree does not follow links") {
  scratch_directory const directory;
  make_with_file(directory / "kept", "x");
  make_directories(directory / "tree/sub");
  std::filesystem::create_symlink("../kept", directory / "tree/link");
  write_text(directory / "tree/sub/f", "");
  remove_tree(directory / "tree");
  remove_tree(directory / "tree");
  CHECK(list_directory(directory.path()) == names{"kept"});
  CHECK(contents_of(directory / "kept/f") == "x");
}

TEST_CASE("a directory replaces another, or leaves it intact at any failure") {
  for (bool const no_exchange : {false, true}) {
    CAPTURE(no_exchange);
    long operations = 1;
    for (long at = 0; at < operations; ++at) {
      CAPTURE(at);
      scratch_directory const directory;
      make_with_file(directory / "new", "new");
      make_with_file(directory / "d", "old");
      auto const replace = [&] { replace_directory(directory / "new", directory / "d"); };
      {
        injection const fails{{.at = at, .with = EIO, .no_exchange = no_exchange}};
        check_failure(failure_of(replace), exit_code::io_failure, directory.path().native(),
                      "Input/output error");
      }
      auto const content = contents_of(directory / "d/f");
      CHECK((content == "old" || content == "new"));
      if (content == "old") {
        CHECK(contents_of(directory / "new/f") == "new");
        injection const counts{{.no_exchange = no_exchange}};
        replace();
        operations = injection::seen();
      }
      restore_replaced(directory / "d");
      CHECK(contents_of(directory / "d/f") == "new");
    }
    CHECK(operations > 3);
  }
}

TEST_CASE("a directory moved aside by a killed process comes back, unless it was replaced") {
  scratch_directory const directory;
  auto const path = directory / "d";
  make_with_file(replaced_name(path), "old");
  restore_replaced(path);
  CHECK(contents_of(path / "f") == "old");
  make_with_file(replaced_name(path), "older");
  restore_replaced(path);
  CHECK(contents_of(path / "f") == "old");
  CHECK(list_directory(directory.path()) == names{"d"});
}

TEST_CASE("a staging directory is removed unless it was moved") {
  scratch_directory const directory;
  {
    staging_directory const staged{directory / "s"};
    write_text(staged.path() / "f", "");
    check_failure(failure_of([&] { staging_directory{directory / "s"}; }), exit_code::io_failure, "/s",
                  "exists");
  }
  CHECK(list_directory(directory.path()).empty());
  {
    staging_directory const staged{directory / "s"};
    replace_directory(staged.path(), directory / "d");
  }
  CHECK(list_directory(directory.path()) == names{"d"});
}

TEST_CASE("names of leftovers are distinguished from others") {
  auto const suffix = random_suffix();
  CHECK(suffix != random_suffix());
  CHECK(is_suffixed(".tmp-" + suffix, ".tmp-"));
  CHECK(!is_suffixed(".tmp-", ".tmp-"));
  CHECK(!is_suffixed(".tmp-" + suffix + "0", ".tmp-"));
  CHECK(!is_suffixed(".tmp-0123456789abcdeX", ".tmp-"));
  CHECK(!is_suffixed("tmp--" + suffix, ".tmp-"));
}

TEST_CASE("an operation that a signal interrupts is repeated") {
  scratch_directory const directory;
  long operations = 1;
  for (long at = 0; at < operations; ++at) {
    CAPTURE(at);
    auto const root = directory / concat("root-", at);
    {
      injection const interrupted{{.at = at, .with = EINTR}};
      make_directories(root / "a/b");
      write_new_file(root / "a/b/file", "text");
      rename_path(root / "a/b/file", root / "a/b/other");
      sync_directory(root / "a/b");
      remove_tree(root / "a");
      operations = injection::seen() - 1;
    }
    CHECK(operations > 14);
    CHECK(list_directory(root).empty());
  }
}

TEST_CASE("a file is replaced atomically, and only a regular file is") {
  scratch_directory const directory;
  auto const file = directory / "file";
  replace_file(file, "one");
  replace_file(file, "two");
  CHECK(contents_of(file) == "two");
  {
    injection const fails{{.at = 0, .with = ENOSPC, .persistent = true}};
    check_failure(failure_of([&] { replace_file(file, "three"); }), exit_code::io_failure, "No space left");
  }
  CHECK(contents_of(file) == "two");
  CHECK(list_directory(directory.path()) == std::vector<std::string>{"file"});

  fs::create_symlink("file", directory / "link");
  fs::create_directory(directory / "directory");
  for (auto const& other : {directory / "link", directory / "directory", fs::path{"/dev/null"}}) {
    check_failure(failure_of([&] { replace_file(other, "x"); }), exit_code::bad_input, other.native(),
                  "regular file");
  }
  CHECK(contents_of(file) == "two");
  CHECK(free_bytes(directory.path()) > 0);
}
