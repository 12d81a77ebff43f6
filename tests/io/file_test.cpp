// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/file.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "faults.hpp"
#include "scratch_directory.hpp"

#include <string>
#include <sys/stat.h>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

std::span<std::byte const> bytes_of(std::string_view text) { return std::as_bytes(std::span{text}); }

}  // namespace

TEST_CASE("bytes written at an offset are read there") {
  scratch_directory const directory;
  auto target = file::create_new(directory / "f");
  target.preallocate(10);
  CHECK(target.size() == 10);
  target.pwrite_all(3, bytes_of("abc"));
  target.sync();
  target.close();
  auto const source = file::open_read(directory / "f");
  std::string text(3, ' ');
  source.pread_exact(3, std::as_writable_bytes(std::span{text}));
  CHECK(text == "abc");
  CHECK(read_file(directory / "f", 10) == std::string_view{"\0\0\0abc\0\0\0\0", 10});
}

TEST_CASE("only regular files of a bounded size are read, through links too") {
  scratch_directory const directory;
  write_text(directory / "f", "12345");
  std::filesystem::create_symlink("f", directory / "link");
  std::filesystem::create_symlink("nowhere", directory / "broken");
  std::filesystem::create_symlink("loop", directory / "loop");
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  CHECK(read_file(directory / "link", 5) == "12345");
  auto const reading = [&](std::string_view name) {
    return failure_of([&] { read_file(directory / name, 4); });
  };
  check_failure(reading("f"), exit_code::bad_input, "/f: 5 bytes, expected at most 4");
  check_failure(reading("absent"), exit_code::bad_input, "/absent", "No such file");
  check_failure(reading("f/inside"), exit_code::bad_input, "/f/inside", "Not a directory");
  check_failure(reading("broken"), exit_code::bad_input, "/broken", "No such file");
  check_failure(reading("loop"), exit_code::bad_input, "/loop", "symbolic links");
  check_failure(reading("pipe"), exit_code::bad_input, "/pipe", "regular file");
  check_failure(reading("."), exit_code::bad_input, "regular file");
  check_failure(reading("new\nline"), exit_code::bad_input, "new\\x0aline");
}

TEST_CASE("a new file replaces nothing, not even a broken link") {
  scratch_directory const directory;
  write_text(directory / "f", "old");
  std::filesystem::create_symlink("elsewhere", directory / "link");
  check_failure(failure_of([&] { write_new_file(directory / "f", "new"); }), exit_code::io_failure, "/f",
                "exists");
  check_failure(failure_of([&] { write_new_file(directory / "link", "new"); }), exit_code::io_failure,
                "/link", "exists");
  CHECK(contents_of(directory / "f") == "old");
  CHECK(!std::filesystem::exists(directory / "elsewhere"));
}

TEST_CASE("interrupted and short transfers are continued") {
  scratch_directory const directory;
  std::string const text(1000, 'x');
  for (int const with : {EINTR, short_transfer}) {
    auto const path = directory / concat("f", with);
    // Operations: open, write (several times), sync, close.
    for (long at = 1; at < 8; ++at) {
      CAPTURE(at);
      {
        injection const disturbed{{.at = at, .with = with}};
        write_new_file(path, text);
      }
      injection const disturbed{{.at = at, .with = with}};
      CHECK(read_file(path, 1000) == text);
      std::filesystem::remove(path);
    }
  }
  injection const always_short{{.at = 0, .with = short_transfer, .persistent = true}};
  write_new_file(directory / "f", text);
  CHECK(read_file(directory / "f", 1000) == text);
  CHECK(injection::seen() > 10);
}

TEST_CASE("every failing operation is reported with path and reason") {
  scratch_directory const directory;
  for (auto const& [with, reason] : {std::pair{ENOSPC, "No space left"}, std::pair{EIO, "Input/output error"},
                                     std::pair{EDQUOT, "quota"}, std::pair{EMFILE, "Too many open files"}}) {
    for (long at = 0; at < 5; ++at) {
      auto const path = directory / concat("f", with, "-", at);
      injection const fails{{.at = at, .with = with}};
      auto const failure = failure_of([&] {
        auto target = file::create_new(path);
        target.preallocate(3);
        target.pwrite_all(0, bytes_of("abc"));
        target.sync();
        target.close();
      });
      check_failure(failure, exit_code::io_failure, path.native(), reason);
    }
  }
}

TEST_CASE("a file system that cannot reserve space does not prevent writing") {
  scratch_directory const directory;
  auto target = file::create_new(directory / "f");
  injection const unsupported{{.at = 0, .with = EOPNOTSUPP}};
  target.preallocate(3);
  CHECK(injection::seen() == 1);
  CHECK(target.size() == 0);
}

TEST_CASE("moving a file transfers its descriptor") {
  scratch_directory const directory;
  write_text(directory / "a", "a");
  write_text(directory / "b", "bb");
  auto a = file::open_read(directory / "a");
  auto b = file::open_read(directory / "b");
  a = std::move(b);
  CHECK(a.size() == 2);
  CHECK(a.path() == directory / "b");
  file const c{std::move(a)};
  CHECK(c.size() == 2);
}
