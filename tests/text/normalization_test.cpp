// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/normalization.hpp>
#include <superoffload/text/utf8.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace superoffload::text;

TEST_CASE("form C composes, orders marks and respects exclusions") {
  CHECK(to_nfc("cafe\u0301") == "caf\u00E9");
  CHECK(to_nfc("\u212B") == "\u00C5");                // singleton
  CHECK(to_nfc("q\u0307\u0323") == "q\u0323\u0307");  // marks in canonical order
  CHECK(to_nfc("\u1E0B\u0323") == "\u1E0D\u0307");    // recomposed across the reordering
  CHECK(to_nfc("\u1112\u1161\u11AB") == "\uD55C");    // Hangul
  CHECK(to_nfc("\u0958") == "\u0915\u093C");          // composition exclusion
  CHECK(to_nfc("\u03B1\u0345\u0313") == to_nfc("\u1F00\u0345"));
  CHECK(to_nfc("") == "");
  CHECK(to_nfc(std::string("a\0b", 3)) == std::string("a\0b", 3));
}

TEST_CASE("text that the quick check finds in form C is so, also next to any other character") {
  std::string all;
  for (char32_t c = 0; c < 0x300; ++c) { append_utf8(all, c); }
  CHECK(is_plainly_nfc(all));
  CHECK(to_nfc(all) == all);
  CHECK_FALSE(is_plainly_nfc("e\u0301"));
}

TEST_CASE("form C of form C changes nothing") {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) {
      continue;
    }
    std::string text = "a";
    append_utf8(text, c);
    auto const once = to_nfc(text);
    if (to_nfc(once) != once) {
      FAIL("code point ", static_cast<std::uint32_t>(c));
    }
  }
}

TEST_CASE("a long run of marks in the worst order is normalised fast") {
  // Alternating combining classes 232 and 220: quadratic for a sort that swaps neighbours.
  std::string marks = "a";
  for (int i = 0; i < 200'000; ++i) { marks += "\u0315\u0316"; }
  auto const sorted = to_nfc(marks);
  CHECK(sorted.size() == marks.size());
  CHECK(sorted.substr(0, 5) == "a\u0316\u0316");
  CHECK(sorted.substr(sorted.size() - 4) == "\u0315\u0315");
}
