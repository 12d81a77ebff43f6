// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/first_bytes.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <fstream>
#include <string>
#include <sys/stat.h>

namespace {

using namespace superoffload;

TEST_CASE("the start of a file, all of a shorter one, and nothing of what cannot be read") {
  test::scratch_directory const directory;
  auto const file = (directory.path() / "f").string();
  std::ofstream{file} << std::string(10'000, 'x');
  CHECK(first_bytes_of(file) == std::string(4096, 'x'));
  CHECK(first_bytes_of(file, 20'000) == std::string(10'000, 'x'));
  CHECK(first_bytes_of("/proc/self/stat")->size() > 10);  // its size is said to be 0
  CHECK(first_bytes_of(file + "/absent") == std::nullopt);
  CHECK(first_bytes_of(directory.path().string()) == std::nullopt);
  auto const pipe = (directory.path() / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(first_bytes_of(pipe) == "");  // not waited for
}

}  // namespace
