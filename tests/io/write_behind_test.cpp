// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/write_behind.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "faults.hpp"
#include "scratch_directory.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

/// Byte `at` of every file here.
std::byte value(std::uint64_t at) { return static_cast<std::byte>(at * 7 + at / 251); }

/// Fills bytes [offset, offset + bytes).
void put(write_behind& output, std::uint64_t offset, std::size_t bytes) {
  auto const memory = output.next(offset, bytes);
  CHECK(memory.size() == bytes);
  for (std::size_t i = 0; i < bytes; ++i) { memory[i] = value(offset + i); }
  output.commit();
}

}  // namespace

TEST_CASE("a file is what was committed, in pieces of any size and with holes") {
  scratch_directory const directory;
  write_behind output{file::create_new(directory / "f")};
  CHECK(output.path() == directory / "f");
  std::vector<bool> written;
  std::uint64_t offset = 0;
  for (std::size_t const bytes : {1, 4096, 100'000, 0, 4 << 20, 3, 70'000, 12, 5000, 4 << 20}) {
    put(output, offset, bytes);
    written.resize(offset + bytes, false);
    std::fill(written.end() - static_cast<std::ptrdiff_t>(bytes), written.end(), true);
    offset += bytes + 5;
  }
  output.finish();
  auto const content = read_file(directory / "f", std::size_t{16} << 20);
  REQUIRE(content.size() == written.size());
  bool equal = true;
  for (std::size_t i = 0; i < content.size(); ++i) {
    equal = equal && std::byte(content[i]) == (written[i] ? value(i) : std::byte{0});
  }
  CHECK(equal);
}

TEST_CASE("a piece that is larger than a buffer is refused") {
  scratch_directory const directory;
  write_behind output{file::create_new(directory / "f")};
  check_failure(failure_of([&] { output.next(0, write_behind::buffer_bytes + 1); }), exit_code::internal,
                "/f", "expected at most");
}

TEST_CASE("a write that fails is reported at the latest by finish, and nothing after it is written") {
  constexpr int pieces = 9;
  // Operations: open, a write for each piece, sync, close.
  for (long at = 1; at < 1 + pieces + 2; ++at) {
    CAPTURE(at);
    scratch_directory const directory;
    injection const full{{.at = at, .with = ENOSPC}};
    check_failure(failure_of([&] {
                    write_behind output{file::create_new(directory / "f")};
                    for (std::uint64_t i = 0; i < pieces; ++i) { put(output, 10 * i, 10); }
                    output.finish();
                  }),
                  exit_code::io_failure, "/f", "No space left");
    auto const expected = std::min<std::uint64_t>(10 * static_cast<std::uint64_t>(at - 1), 10 * pieces);
    CHECK(std::filesystem::file_size(directory / "f") == expected);
  }
}

TEST_CASE("without finish the rest is given up, and nothing waits") {
  scratch_directory const directory;
  for (int pieces = 0; pieces < 6; ++pieces) {
    write_behind output{file::create_new(directory / std::to_string(pieces))};
    for (int i = 0; i < pieces; ++i) { put(output, 10 * static_cast<std::uint64_t>(i), 10); }
    output.next(10 * static_cast<std::uint64_t>(pieces), 10);  // never committed
  }
}
