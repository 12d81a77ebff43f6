// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/fingerprint.hpp>

#include <doctest/doctest.h>

#include "scratch_file.hpp"

#include <filesystem>
#include <string>
#include <vector>

using namespace superoffload;
using namespace superoffload::data;

namespace {

TEST_CASE("FNV-1a's published values") {
  CHECK(fingerprint_of(testing::scratch_file{""}.path()) == fingerprint{0, 0xCBF29CE484222325U});
  CHECK(fingerprint_of(testing::scratch_file{"a"}.path()) == fingerprint{1, 0xAF63DC4C8601EC8CU});
  CHECK(fingerprint_of(testing::scratch_file{"foobar"}.path()) == fingerprint{6, 0x85944171F73967E8U});
}

TEST_CASE("one byte more, less or other is another fingerprint, beyond one chunk too") {
  std::string text(200'000, 'x');
  auto const before = fingerprint_of(testing::scratch_file{text}.path());
  CHECK(before.bytes == 200'000);
  CHECK(fingerprint_of(testing::scratch_file{text + "x"}.path()) != before);
  text[150'000] = 'y';
  CHECK(fingerprint_of(testing::scratch_file{text}.path()) != before);
  text[150'000] = 'x';
  CHECK(fingerprint_of(testing::scratch_file{text}.path()) == before);
  CHECK_THROWS_AS(fingerprint_of(SUPEROFFLOAD_TEST_DATA), error);
  CHECK_THROWS_AS(fingerprint_of("/nowhere"), error);
}

TEST_CASE("several files: their bytes, their borders and their order count") {
  testing::scratch_file const ab{"ab"}, a{"a"}, b{"b"}, empty{""};
  using files = std::vector<std::filesystem::path>;
  CHECK(fingerprint_of(files{ab.path()}) == fingerprint_of(ab.path()));
  auto const both = fingerprint_of(files{a.path(), b.path()});
  CHECK(both.bytes == 2);
  CHECK(both != fingerprint_of(ab.path()));
  CHECK(both != fingerprint_of(files{b.path(), a.path()}));
  CHECK(both != fingerprint_of(files{a.path(), b.path(), empty.path()}));
}

}  // namespace
