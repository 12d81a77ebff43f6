// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/character_class.hpp>
#include <superoffload/text/utf8.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

using namespace superoffload::text;
using enum character_class;

TEST_CASE("the classes hold what the regular expressions of Hugging Face tokenizers 0.23 match") {
  struct total {
    std::uint64_t count, sum;
    bool operator==(total const&) const = default;
  };
  std::array<total, 10> found{};
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c < 0xd800 || c > 0xdfff) {
      auto& [count, sum] = found[static_cast<std::size_t>(character_table::unicode()[c])];
      ++count;
      sum += c;
    }
  }
  auto const of = [&](character_class one) { return found[static_cast<std::size_t>(one)]; };
  // The number and the sum of the code points that match [\p{Lu}\p{Lt}], \p{Ll} and so on.
  CHECK(of(upper) == total{1889, 87144871});
  CHECK(of(lower) == total{2258, 104713123});
  CHECK(of(letter) == total{136881, 15049071264});
  CHECK(of(mark) == total{2501, 316771473});
  CHECK(of(digit) == total{996, 53091233});
  CHECK(of(numeral) == total{915, 57560662});
  CHECK(of(connector) == total{10, 415682});
  CHECK(of(space) == total{23, 141586 - '\r' - '\n'});
  CHECK(of(newline) == total{2, '\r' + '\n'});
}

TEST_CASE("white space is in two classes") {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    auto const set = set_of(character_table::unicode()[c]);
    if (((set & set_of(space, newline)) != 0) != is_white_space(c)) {
      FAIL(static_cast<std::uint32_t>(c));
    }
  }
}

TEST_CASE("planes outside of the table have their classes") {
  auto const& table = character_table::unicode();
  CHECK(table[0x1ffff] == other);
  CHECK(table[0x20000] == letter);
  CHECK(table[0x2a6df] == letter);
  CHECK(table[0x2a6e0] == other);
  CHECK(table[0xe0100] == mark);
  CHECK(table[0xe01ef] == mark);
  CHECK(table[0x10ffff] == other);
}
