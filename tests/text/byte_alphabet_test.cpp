// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/byte_alphabet.hpp>

#include <doctest/doctest.h>

#include <set>

using namespace superoffload::text;

TEST_CASE("the alphabet has a letter for every byte") {
  CHECK(std::set<char32_t>(byte_alphabet.begin(), byte_alphabet.end()).size() == 256);
  CHECK(to_byte_alphabet(" ") == "\u0120");
  CHECK(to_byte_alphabet("\n") == "\u010A");
  CHECK(to_byte_alphabet("a~") == "a~");
  CHECK(to_byte_alphabet("\xad") == "\u0143");  // the last of the 68
}

TEST_CASE("letters are converted back to bytes, other characters are refused") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) { bytes += static_cast<char>(byte); }
  CHECK(from_byte_alphabet(to_byte_alphabet(bytes)) == bytes);
  CHECK_FALSE(from_byte_alphabet("a b"));
  CHECK_FALSE(from_byte_alphabet("\u0144"));
  CHECK_FALSE(from_byte_alphabet("\u4F60"));
}
