// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/normalizer.hpp>

#include <doctest/doctest.h>

#include "random_texts.hpp"

#include <string>

using namespace superoffload::text;

// The digests are of what Hugging Face tokenizers 0.23.3 makes of the same text.
TEST_CASE("Nmt and StripAccents change the characters of Hugging Face tokenizers") {
  std::string all;
  for (char32_t c = 1; c <= 0x10ffff; ++c) {
    if (c < 0xd800 || c > 0xdfff) {
      append_utf8(all, c);
    }
  }
  CHECK(digest(normalizer{{nmt_step{}}}(all)) == 3'720'985'126);
  CHECK(digest(normalizer{{strip_accents_step{}}}(all)) == 1'301'847'528);
}

TEST_CASE("what a normalizer makes is traced to the characters before") {
  auto const spaced = normalizer{{nmt_step{}}}("a\u200b\u0001b\u00e9", true);
  CHECK(spaced.text() == "a b\u00e9");
  CHECK(spaced.origin(1) == 1);
  CHECK(spaced.origin(2) == 5);
  auto const letters = normalizer{{letters_step{}}}("a\u00e9 b", true);
  CHECK(letters.text() == "a\u00c3\u00a9\u0120b");
  CHECK(letters.origin(1) == 1);
  CHECK(letters.origin(3) == 1);
  CHECK(letters.origin(5) == 3);
  CHECK(letters.origin(7) == 4);
}
