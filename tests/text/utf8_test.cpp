// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/utf8.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace superoffload::text;

TEST_CASE("every code point survives being written and read") {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) {
      continue;
    }
    std::string text;
    append_utf8(text, c);
    auto const first = first_step(text);
    auto const last = last_step("a" + text);
    bool const same =
        first.valid && first.code_point == c && first.length == text.size() && last.code_point == c;
    if (!same) {
      FAIL("code point ", static_cast<std::uint32_t>(c));
    }
  }
}

TEST_CASE("the first byte that is not UTF-8 is found") {
  auto const npos = std::string_view::npos;
  CHECK(find_invalid_utf8("") == npos);
  CHECK(find_invalid_utf8("caf\xc3\xa9 \xf0\x9f\x9a\x80") == npos);
  CHECK(find_invalid_utf8("ab\x80") == 2);
  CHECK(find_invalid_utf8("\xc0\xaf") == 0);          // overlong
  CHECK(find_invalid_utf8("a\xe0\x80\x80") == 1);     // overlong
  CHECK(find_invalid_utf8("\xed\xa0\x80") == 0);      // surrogate
  CHECK(find_invalid_utf8("\xf4\x90\x80\x80") == 0);  // above U+10FFFF
  CHECK(find_invalid_utf8("\xf5\x80\x80\x80") == 0);
}

TEST_CASE("text cut inside a character is invalid at that character") {
  std::string const text = "x\xc3\xa9y\xe4\xbd\xa0z\xf0\x9f\x9a\x80";
  std::vector<std::size_t> const starts{1, 4, 8};
  for (std::size_t length = 0; length <= text.size(); ++length) {
    auto expected = std::string_view::npos;
    for (auto const start : starts) {
      auto const whole = first_step(std::string_view{text}.substr(start)).length;
      if (start < length && length < start + whole) {
        expected = start;
      }
    }
    CHECK(find_invalid_utf8(text.substr(0, length)) == expected);
  }
}

TEST_CASE("each maximal invalid part becomes one replacement character") {
  CHECK(to_valid_utf8("Hello \xf0\x90\x80World") == "Hello \uFFFDWorld");
  CHECK(to_valid_utf8("\xc2\xc2 \x85 \xc2\x85") == "\uFFFD\uFFFD \uFFFD \u0085");
  CHECK(to_valid_utf8("\xe0\x80\x80") == "\uFFFD\uFFFD\uFFFD");
  CHECK(to_valid_utf8("\xf0\x9f\x9a") == "\uFFFD");
  CHECK(to_valid_utf8("\xed\xa0\x80") == "\uFFFD\uFFFD\uFFFD");
}

TEST_CASE("white space is 25 code points") {
  int count = 0;
  for (char32_t c = 0; c <= 0x10ffff; ++c) { count += is_white_space(c); }
  CHECK(count == 25);
  for (char32_t const c : {0x1cu, 0x1fu, 0x180eu, 0x200bu, 0xfeffu}) { CHECK_FALSE(is_white_space(c)); }
}
