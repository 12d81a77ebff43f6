// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

using namespace superoffload;

TEST_CASE("parts are joined, numbers in their shortest exact form") {
  CHECK(concat() == "");
  CHECK(concat("a", std::string{"b"}, std::string_view{"c"}, 'd') == "abcd");
  CHECK(concat(1, ' ', -2L, ' ', 3U) == "1 -2 3");
  CHECK(concat(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(concat(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(concat(0.1, " ", 0.1F, " ", 1e300) == "0.1 0.1 1e+300");
  CHECK(concat(true, false) == "truefalse");
}

TEST_CASE("an error has its code and its message, and expect throws only when it must") {
  expect(true, exit_code::internal, "never");
  try {
    expect(false, exit_code::cannot_fit, "needs ", 12, " bytes");
    FAIL("did not throw");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::cannot_fit);
    CHECK(std::string_view{e.what()} == "needs 12 bytes");
  }
  CHECK_THROWS_AS(fail(exit_code::bad_input, "x"), std::exception);
}

TEST_CASE("the exit codes are part of the interface") {
  CHECK(static_cast<int>(exit_code::ok) == 0);
  CHECK(static_cast<int>(exit_code::internal) == 1);
  CHECK(static_cast<int>(exit_code::bad_input) == 2);
  CHECK(static_cast<int>(exit_code::cannot_fit) == 3);
  CHECK(static_cast<int>(exit_code::io_failure) == 4);
  CHECK(static_cast<int>(exit_code::device) == 5);
  CHECK(static_cast<int>(exit_code::nonfinite) == 6);
  CHECK(static_cast<int>(exit_code::interrupted) == 7);
}

TEST_CASE("control characters cannot reach a terminal") {
  CHECK(printable("plain text") == "plain text");
  CHECK(printable("a\nb\x1b[2J\x7f") == "a\\x0ab\\x1b[2J\\x7f");
  CHECK(printable(std::string_view{"\0", 1}) == "\\x00");
  CHECK(printable("a\xc2\x9b"
                  "31m\xc2\x85\xc2\xa0") == "a\\xc2\\x9b31m\\xc2\\x85\xc2\xa0");  // CSI, NEL
  CHECK(printable("\x9b"
                  "31m \xff \xc3( \xe2\x82") == "\\x9b31m \\xff \\xc3( \\xe2\\x82");  // not UTF-8
  CHECK(printable("\xe2\x82\xac \xf0\x9f\x98\x80") == "\xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(printable("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
  CHECK(printable("abcdef", 6) == "abcdef");
  CHECK(printable("abcdefg", 6) == "abcdef...");
  CHECK(printable(std::string(1000, 'x')) == std::string(200, 'x') + "...");
}
