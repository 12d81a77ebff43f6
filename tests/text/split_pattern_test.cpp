// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/text/split_pattern.hpp>
#include <superoffload/text/utf8.hpp>

#include <doctest/doctest.h>

#include "reference_pattern.hpp"
#include "support/sanitizer.hpp"

#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace superoffload::text;

namespace {

using pieces = std::vector<std::string_view>;

constexpr std::string_view llama_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view seed_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view gpt_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

split_pattern const llama{llama_pattern, "test"};
split_pattern const qwen{qwen_pattern, "test"};
split_pattern const seed{seed_pattern, "test"};
split_pattern const gpt{gpt_pattern, "test"};

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

TEST_CASE("pieces of Hugging Face tokenizers") {
  struct reference {
    std::string_view text;
    pieces llama, qwen, seed, gpt;
  };
  auto const check = [](reference const& expected) {
    CAPTURE(expected.text);
    CHECK(llama(expected.text) == expected.llama);
    CHECK(qwen(expected.text) == expected.qwen);
    CHECK(seed(expected.text) == expected.seed);
    CHECK(gpt(expected.text) == expected.gpt);
  };
  check({"I'LL we'Ve 'tis ''s 'R",
         {"I", "'LL", " we", "'Ve", " '", "tis", " ''", "s", " '", "R"},
         {"I", "'LL", " we", "'Ve", " '", "tis", " ''", "s", " '", "R"},
         {"I", "'LL", " we", "'Ve", " '", "tis", " ''", "s", " '", "R"},
         {"I'LL", " we'Ve", " '", "tis", " ''", "s", " '", "R"}});
  check({"it's\u212A '\u017Fx",
         {"it", "'s", "\u212A", " '", "\u017Fx"},
         {"it", "'s", "\u212A", " '", "\u017Fx"},
         {"it", "'s", "\u212A", " '", "\u017Fx"},
         {"it's", "\u212A", " '", "\u017Fx"}});
  check({"\u01C5\u01C4\u02B0a'DX",
         {"\u01C5\u01C4\u02B0a", "'D", "X"},
         {"\u01C5\u01C4\u02B0a", "'D", "X"},
         {"\u01C5\u01C4\u02B0a", "'D", "X"},
         {"\u01C5\u01C4\u02B0a'D", "X"}});
  check({"HTTPServer\u4F60A\u4F60",
         {"HTTPServer\u4F60A\u4F60"},
         {"HTTPServer\u4F60A\u4F60"},
         {"HTTPServer\u4F60A\u4F60"},
         {"HTTPServer\u4F60", "A\u4F60"}});
  check({"\u0301\u0301A\u0301b",
         {"\u0301\u0301", "A", "\u0301b"},
         {"\u0301\u0301", "A", "\u0301b"},
         {"\u0301\u0301", "A", "\u0301b"},
         {"\u0301\u0301A\u0301b"}});
  check({"\u0660\u0661\u0662\u0663\u00BD\u2167",
         {"\u0660\u0661\u0662", "\u0663\u00BD\u2167"},
         {"\u0660", "\u0661", "\u0662", "\u0663", "\u00BD", "\u2167"},
         {"\u0660", "\u0661", "\u0662", "\u0663", "\u00BD", "\u2167"},
         {"\u0660\u0661\u0662", "\u0663\u00BD\u2167"}});
  check({"a\r\n \n\t b \r\n",
         {"a", "\r\n \n", "\t", " b", " \r\n"},
         {"a", "\r\n \n", "\t", " b", " \r\n"},
         {"a", "\r\n \n", "\t", " b", " \r\n"},
         {"a", "\r\n \n", "\t", " b", " \r\n"}});
  check({"  \u3000\u00A0x\u2028\u2029",
         {"  \u3000", "\u00A0x", "\u2028\u2029"},
         {"  \u3000", "\u00A0x", "\u2028\u2029"},
         {"  \u3000", "\u00A0x", "\u2028\u2029"},
         {"  \u3000", "\u00A0x", "\u2028\u2029"}});
  check({"?!\r\n//\n/a",
         {"?!\r\n", "//\n", "/a"},
         {"?!\r\n", "//\n", "/a"},
         {"?!", "\r\n", "//", "\n", "/a"},
         {"?!\r\n//\n/", "a"}});
  check({"\U0001F468\u200D\U0001F469 \u1C89\u1C8A\U00010D40",
         {"\U0001F468\u200D\U0001F469", " \u1C89\u1C8A", "\U00010D40"},
         {"\U0001F468\u200D\U0001F469", " \u1C89\u1C8A", "\U00010D40"},
         {"\U0001F468\u200D\U0001F469", " \u1C89\u1C8A", "\U00010D40"},
         {"\U0001F468\u200D\U0001F469", " \u1C89\u1C8A", "\U00010D40"}});
  check({"\u0378\uFEFF\u180E \uE000",
         {"\u0378\uFEFF\u180E", " \uE000"},
         {"\u0378\uFEFF\u180E", " \uE000"},
         {"\u0378\uFEFF\u180E", " \uE000"},
         {"\u0378\uFEFF\u180E", " \uE000"}});
  check({"1 23 4567\u00A08",
         {"1", " ", "23", " ", "456", "7", "\u00A0", "8"},
         {"1", " ", "2", "3", " ", "4", "5", "6", "7", "\u00A0", "8"},
         {"1", " ", "2", "3", " ", "4", "5", "6", "7", "\u00A0", "8"},
         {"1", " ", "23", " ", "456", "7", "\u00A0", "8"}});
}

TEST_CASE("random text is cut as by the published patterns") {
  std::vector<std::string> const interesting{
      "'",      "'S",     "'t",     "'rE",     "'Ve",    "'m",         "'lL",       "'D",         "'\u017F",
      "'r",     "\u017F", "\u212A", "\u2019s", "e",      "l",          "A",         "b",          "AB",
      "\r",     "\n",     "\r\n",   " ",       " ",      "  ",         "\t",        "\v",         "\u0085",
      "\u00A0", "\u180E", "\u200B", "\u2028",  "\u3000", "/",          "//",        "_",          "-",
      "?!",     "\u0301", "\u20DD", "\u0903",  "\u01C5", "\u02B0",     "\u4F60",    "\U00020000", "\u0660",
      "\u00BD", "\u2167", "12",     "123",     "\u0378", "\U0001F600", "\U000E0100"};
  std::mt19937_64 random{17};
  auto const below = [&](std::size_t end) { return random() % end; };
  for (auto const& [split, pattern] : {std::pair{&llama, llama_pattern}, std::pair{&qwen, qwen_pattern},
                                       std::pair{&seed, seed_pattern}, std::pair{&gpt, gpt_pattern}}) {
    reference_pattern const reference{pattern};
    for (int i = 0; i < (superoffload::test::slowed ? 5'000 : 25'000); ++i) {
      std::string text;
      for (auto left = 1 + below(12); left > 0; --left) {
        if (below(4) != 0) {
          text += interesting[below(interesting.size())];
          continue;
        }
        auto const c = static_cast<char32_t>(below(2) != 0 ? below(0x3000) : below(0x20000));
        append_utf8(text, c >= 0xd800 && c <= 0xdfff ? U'x' : c);
      }
      if ((*split)(text) != reference(text)) {
        CAPTURE(text);
        CHECK((*split)(text) == reference(text));
      }
    }
  }
}

TEST_CASE("invalid UTF-8 is cut like symbols") {
  CHECK(llama("a\xff b\xe4\xbd") == pieces{"a", "\xff", " b", "\xe4\xbd"});
  CHECK(llama("\xffz") == pieces{"\xffz"});
  CHECK(gpt("'\xc5") == pieces{"'\xc5"});
  std::mt19937_64 random{18};
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes(1 + random() % 20, '\0');
    for (auto& byte : bytes) { byte = static_cast<char>(random()); }
    for (auto const* const split : {&llama, &qwen, &seed, &gpt}) {
      std::string joined;
      for (auto const piece : (*split)(bytes)) {
        CHECK(!piece.empty());
        joined += piece;
      }
      CHECK(joined == bytes);
    }
  }
}

TEST_CASE("the long s folds to s in contractions") {
  CHECK(llama("it'\u017F ok") == pieces{"it", "'\u017F", " ok"});
  CHECK(gpt("it'\u017F ok") == pieces{"it'\u017F", " ok"});
}

TEST_CASE("white space is what the patterns' engine takes for it") {
  for (char32_t c = 0x80; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) {
      continue;
    }
    std::string text = "!";
    append_utf8(text, c);
    text += " !";
    // White space after "!" is a piece of its own or joins the space. Anything else joins "!", or is a letter
    // or number.
    auto const with_space = std::string{text.substr(1, text.size() - 3)};
    auto const found = llama(text);
    bool const alone = found.size() == 3 && found[1] == with_space && found[2] == " !";
    if (is_white_space(c) && !alone) {
      FAIL("white space ", static_cast<std::uint32_t>(c));
    }
    if (!is_white_space(c) && found[0] == "!" && found[1] == with_space && c != 0x180e) {
      auto const letter = llama(with_space + "!");  // a letter or number is alone; other characters join "!"
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
