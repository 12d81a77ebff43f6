// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/text/split_pattern.hpp>
#include <superoffload/text/utf8.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace superoffload::text;

namespace {

using pieces = std::vector<std::string_view>;

split_pattern const llama{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    "test"};
split_pattern const qwen{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    "test"};
split_pattern const seed{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)",
    "test"};
split_pattern const gpt{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    "test"};

}  // namespace

TEST_CASE("words, numbers, punctuation and white space") {
  CHECK(llama("I'M here, 12345  x\n\n y") ==
        pieces{"I", "'M", " here", ",", " ", "123", "45", " ", " x", "\n\n", " y"});
  CHECK(qwen("a12") == pieces{"a", "1", "2"});
  CHECK(llama("!\n\n") == pieces{"!\n\n"});
  CHECK(seed("!\n\n") == pieces{"!", "\n\n"});
  CHECK(gpt("HelloWorld's/\n") == pieces{"Hello", "World's", "/\n"});
  CHECK(llama("") == pieces{});
}

TEST_CASE("the long s folds to s in contractions") {
  CHECK(llama("it'\u017F ok") == pieces{"it", "'\u017F", " ok"});
  CHECK(gpt("it'\u017F ok") == pieces{"it'\u017F", " ok"});
}

TEST_CASE("white space is what the patterns were written for") {
  for (char32_t c = 0x80; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) {
      continue;
    }
    std::string text = "!";
    append_utf8(text, c);
    text += " !";
    // White space after "!" is a piece of its own or joins the space; anything else joins "!" or is a letter
    // or number.
    auto const with_space = std::string{text.substr(1, text.size() - 3)};
    auto const found = llama(text);
    bool const alone = found.size() == 3 && found[1] == with_space && found[2] == " !";
    if (is_white_space(c) && !alone) {
      FAIL("white space ", static_cast<std::uint32_t>(c));
    }
    if (!is_white_space(c) && found[0] == "!" && found[1] == with_space && c != 0x180e) {
      auto const letter =
          llama(with_space + "!");  // a letter or number stands alone; other characters join "!"
      if (letter.size() != 2) {
        FAIL("not white space ", static_cast<std::uint32_t>(c));
      }
    }
  }
  CHECK(llama("!\u180E!") == pieces{"!\u180E!"});
  CHECK(llama("!\u200B!") == pieces{"!\u200B!"});
}

TEST_CASE("the pieces of every character are the text") {
  std::string all;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c < 0xd800 || c > 0xdfff) {
      append_utf8(all, c);
    }
  }
  for (auto const* const split : {&llama, &qwen, &seed, &gpt}) {
    auto const found = (*split)(all);
    std::string joined;
    for (auto const piece : found) { joined += piece; }
    CHECK(joined == all);
  }
}

TEST_CASE("runs of a million characters are cut without recursion") {
  for (auto const* const split : {&llama, &qwen, &seed, &gpt}) {
    for (std::string const unit :
         {"a", "A", "1", " ", "\n", "!", "\u4F60", "\u0301", "A\u0301", " \n", "\n ", "'s"}) {
      std::string text;
      for (int i = 0; i < 1'000'000; ++i) { text += unit; }
      std::size_t length = 0;
      for (auto const piece : (*split)(text)) { length += piece.size(); }
      CHECK(length == text.size());
    }
  }
}

TEST_CASE("an unknown pattern is refused by name") {
  CHECK_THROWS_WITH_AS(
      split_pattern("(a+)+$", "file: field"),
      "file: field: unknown pattern '(a+)+$'; expected one of those of Llama 3, Phi 4, Qwen 3, "
      "Seed-OSS or gpt-oss",
      superoffload::error);
}
