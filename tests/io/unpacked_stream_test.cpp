// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/unpacked_stream.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "scratch_directory.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <vector>

using namespace superoffload;
using namespace superoffload::io;
using testing::check_failure;
using testing::failure_of;

namespace {

/// The programs that this machine has.
std::vector<std::string> programs() {
  std::vector<std::string> found;
  for (std::string const program : {"gzip", "zstd"}) {
    if (std::system((program + " --version >/dev/null 2>&1").c_str()) == 0) {
      found.push_back(program);
    }
  }
  REQUIRE(!found.empty());
  return found;
}

/// `content`, packed by `program`.
std::string packed_by(std::string const& program, std::string const& content) {
  testing::scratch_directory const root;
  std::ofstream{root / "plain", std::ios::binary} << content;
  auto const command =
      concat(program, " -c < '", (root / "plain").string(), "' > '", (root / "packed").string(), "'");
  REQUIRE(std::system(command.c_str()) == 0);
  return read_file(root / "packed", std::size_t{1} << 24);
}

/// All bytes of a stream, by pieces of `piece`.
std::string rest_of(byte_stream& stream, std::size_t piece = 4099) {
  std::string all;
  std::vector<char> buffer(piece);
  while (auto const got = stream.read(buffer)) { all.append(buffer.data(), got); }
  CHECK(stream.read(buffer) == 0);
  return all;
}

/// More than a pipe holds, of few different bytes.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 300'000; ++i) { text += std::to_string(i * 7919 % 10007) + '\n'; }
  return text;
}

struct packed_file {
  testing::scratch_directory root;
  std::filesystem::path path = root / "rows.jsonl";

  explicit packed_file(std::string const& content) { std::ofstream{path, std::ios::binary} << content; }
};

/// PATH without any program, until the end of the block.
class empty_path {
public:
  empty_path() { ::setenv("PATH", "/nowhere", 1); }
  ~empty_path() { ::setenv("PATH", before_.c_str(), 1); }

private:
  std::string before_ = std::getenv("PATH");
};

TEST_CASE("a packed file gives what was packed, a plain one itself, whatever the names") {
  auto const text = long_text();
  for (auto const& program : programs()) {
    CAPTURE(program);
    auto const packed = packed_by(program, text);
    CHECK(packed.size() < text.size() / 2);
    CHECK(rest_of(*open_unpacked(packed_file{packed}.path)) == text);
    CHECK(rest_of(*open_unpacked(packed_file{packed_by(program, "")}.path)).empty());
    CHECK(rest_of(*open_unpacked(packed_file{packed + packed_by(program, "more")}.path)) == text + "more");
  }
  for (std::string const plain : {"", "\x1f", "text"}) {
    packed_file const file{plain};
    CHECK(rest_of(*open_unpacked(file.path)) == plain);
  }
}

TEST_CASE("a packed file that is cut off or damaged is refused with what the program says") {
  for (auto const& program : programs()) {
    CAPTURE(program);
    auto const whole = packed_by(program, long_text());
    auto damaged = whole;
    damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 0x55);
    for (auto const& content : {whole.substr(0, whole.size() / 2), whole.substr(0, 5), damaged}) {
      packed_file const file{content};
      check_failure(failure_of([&] { rest_of(*open_unpacked(file.path)); }), exit_code::bad_input,
                    file.path.string(), program, " cannot unpack it: ");
    }
  }
}

TEST_CASE("a program that is not installed is named") {
  for (std::string const first_bytes : {"\x1f\x8b", "\x28\xb5\x2f\xfd"}) {
    packed_file const file{first_bytes};
    empty_path const none;
    check_failure(failure_of([&] { open_unpacked(file.path); }), exit_code::bad_input, file.path.string(),
                  "packed by ", "install ");
  }
}

TEST_CASE("a stream that is left in the middle leaves no process") {
  packed_file const file{packed_by("gzip", std::string(std::size_t{1} << 24, 'x'))};
  {
    auto const stream = open_unpacked(file.path);
    std::vector<char> some(100);
    CHECK(stream->read(some) > 0);
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("the ending of a packed file") {
  CHECK(unpacked_name("a.jsonl.gz") == "a.jsonl");
  CHECK(unpacked_name("a.json.zst") == "a.json");
  CHECK(unpacked_name("a.gz.json") == "a.gz.json");
}

}  // namespace
