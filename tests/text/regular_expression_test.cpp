// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/regular_expression.hpp>
#include <superoffload/text/split_pattern.hpp>

#include <doctest/doctest.h>

#include "random_texts.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

using namespace superoffload;
using namespace superoffload::text;

namespace {

std::vector<std::string> found(std::string_view pattern, std::string_view text) {
  std::vector<std::string> out;
  for (auto const [begin, end] : regular_expression{pattern, "test"}.matches(text)) {
    out.emplace_back(text.substr(begin, end - begin));
  }
  return out;
}

using strings = std::vector<std::string>;

std::string complaint(std::string_view pattern) {
  try {
    static_cast<void>(regular_expression{pattern, "file: field"});
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    return e.what();
  }
  return "no complaint";
}

}  // namespace

// Matches as of Oniguruma 6.9.10, through Hugging Face tokenizers 0.23.3.
TEST_CASE("matches of Oniguruma") {
  std::string_view const text = "ab \n\n cd  x\n   \u00dfSS \u017f a\u6f22\U00020000 aabb ]5";
  CHECK(found(R"(\s+$)", text) == strings{" \n"});
  CHECK(found(R"(^\w)", text) == strings{"a"});
  CHECK(found(".+", text) == strings{"ab ", " cd  x", "   \u00dfSS \u017f a\u6f22\U00020000 aabb ]5"});
  CHECK(found(R"([\w&&[^a]]+)", text) ==
        strings{"b", "cd", "x", "\u00dfSS", "\u017f", "\u6f22\U00020000", "bb", "5"});
  CHECK(found(R"(\p{^L}+)", "a1 b") == strings{"1 "});
  CHECK(found(R"(\p{Letter}\p{l})", "a1bc") == strings{"bc"});
  CHECK(found("(?<=a)b", text) == strings{"b", "b"});
  CHECK(found("(?<!a)b", text) == strings{"b"});
  CHECK(found("(?>a)b", text) == strings{"ab", "ab"});
  CHECK(found("a++b", text) == strings{"ab", "aab"});
  CHECK(found("a++a", "aaaa").empty());
  CHECK(found("a*?b", text) == strings{"ab", "aab", "b"});
  CHECK(found("a{1,2}?b", "aab") == strings{"aab"});
  CHECK(found("a{2,}|a{1}", "aaab a") == strings{"aaa", "a"});
  CHECK(found(R"(\bcd\b)", text) == strings{"cd"});
  CHECK(found(R"(\x{62}\u0062)", text) == strings{"bb"});
  CHECK(found(R"((?i)AB)", text) == strings{"ab", "ab"});
  CHECK(found(R"((?i:'s)(?-i:s))", "'\u017fs 'Ss 'SS") == strings{"'\u017fs", "'Ss"});
  CHECK(found(R"([a-z&&b])", "abc") == strings{"b"});
  CHECK(found(R"([^\S\n]+)", "a \n\t b") == strings{" ", "\t "});
  CHECK(found(R"((?:ab|a)(?:c|bd))", "abc abd") == strings{"abc", "abd"});
  CHECK(found("(?:ab?){2}", "aab ababab") == strings{"aab", "abab"});
  CHECK(found(R"(\.\*)", "a.*b") == strings{".*"});
  CHECK(found("x*", "axb") == strings{"", "x", ""});
  CHECK(found("", "\u00e9") == strings{"", ""});
}

TEST_CASE("scripts, categories and classes of POSIX") {
  std::string_view const text =
      "Ab\u4f60\u3005\u3042\u30ab\u30fc\ud55c\u0416\u03b1 1\u00bd$\u20ac-\U0002070e\U0001f600\u0301";
  CHECK(found(R"(\p{Han}+)", text) == strings{"\u4f60\u3005", "\U0002070e"});
  CHECK(found(R"(\p{Hiragana}|\p{Katakana}|\p{Hangul})", text) == strings{"\u3042", "\u30ab", "\ud55c"});
  CHECK(found(R"([\p{Latn}\p{cyrillic}\p{GREEK}]+)", text) == strings{"Ab", "\u0416\u03b1"});
  CHECK(found(R"([\p{L}&&[^\p{Han}]]+)", text) == strings{"Ab", "\u3042\u30ab\u30fc\ud55c\u0416\u03b1"});
  CHECK(found(R"(\p{^Common}+)", "a1\u4f60") == strings{"a", "\u4f60"});
  CHECK(found(R"(\P{Inherited}+)", "a\u0301b") == strings{"a", "b"});
  CHECK(found(R"(\p{Currency_Symbol}|\p{dash punctuation})", text) == strings{"$", "\u20ac", "-"});
  CHECK(found(R"(\p{Emoji_Presentation})", text) == strings{"\U0001f600"});
  CHECK(found("[[:punct:]]+", text) == strings{"$\u20ac-", "\U0001f600"});
  CHECK(found(R"(\p{Punct}+)", text) == strings{"-"});
  CHECK(found("[^[:^upper:]]", text) == strings{"A", "\u0416"});
  CHECK(found("[[:digit:]a-b]", text) == strings{"b", "1"});
  CHECK(found(R"(\w+|[\W]+)", "a\u00bd") == strings{"a\u00bd"});  // a number of Latin-1 is both
  CHECK(found(R"([\w]+|[\W]+)", "a\u00bd") == strings{"a", "\u00bd"});
}

TEST_CASE("groups may have names") {
  CHECK(found("(?<word>[a-z]+)(?'n'1)?(?<word>!)", "ab1! c!") == strings{"ab1!", "c!"});
  CHECK(found("(?<=(?<a_b>x))y", "xy") == strings{"y"});
  CHECK(found("(?<\u4f60'>a)", "a") == strings{"a"});
}

TEST_CASE("every class has the characters of Oniguruma") {
  std::string all;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c < 0xd800 || c > 0xdfff) {
      append_utf8(all, c);
    }
  }
  auto const classes =
      io::read_json(std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "tokenizers" / "classes.json");
  REQUIRE(classes.size() > 100);
  for (auto const& one : classes.items()) {
    auto const& pattern = one.key();
    CAPTURE(pattern);
    std::string members;
    for (auto const& run : found(pattern, all)) { members += run; }
    CHECK(digest(members) == one.value().get<std::uint32_t>());
  }
}

TEST_CASE("what is not supported is refused by name") {
  struct refused {
    std::string_view pattern, says;
  };
  for (auto const& one :
       std::vector<refused>{{R"((a)\1)", "this escape at byte 5"},
                            {R"(\p{IsHan})", "property 'IsHan'"},
                            {R"(\p{Katakana_Or_Hiragana})", "property 'Katakana_Or_Hiragana'"},
                            {R"(\p{L)", "a property without '}'"},
                            {R"(\pL)", "a property without '{'"},
                            {R"((?P<name>a))", "this kind of group"},  // Oniguruma refuses it, too
                            {R"((?<>a))", "this name of a group"},
                            {R"((?<1>a))", "this name of a group"},
                            {R"((?<n)>a))", "this name of a group"},
                            {R"((?'n>a))", "this name of a group"},
                            {R"((?<n>a)\k<n>)", "this escape at byte"},
                            {R"((?s).)", "this kind of group"},
                            {"(a*)*", "any number of what may be empty"},
                            {"(?:a?|b)+", "any number of what may be empty"},
                            {"a**", "a quantifier behind another one"},
                            {"a{1}{2}", "a quantifier behind another one"},
                            {"a{2", "'{' that begins no interval"},
                            {"a{3,2}", "'{' that begins no interval"},
                            {"a{2000}", "'{' that begins no interval"},
                            {"*a", "a quantifier of nothing"},
                            {"^*", "a quantifier behind an assertion"},
                            {"(?<=a+)b", "an assertion behind of varying length"},
                            {"[[:foo:]]", "this POSIX class"},
                            {"[[:alpha", "this POSIX class"},
                            {"(?i:[[:alpha:]])", "a POSIX class whose case is ignored"},
                            {"[]a]", "an empty class"},
                            {"[b-a]", "this range of a class"},
                            {R"([a-\d])", "this range of a class"},
                            {"[ab", "an end"},
                            {"(ab", "'(' without ')'"},
                            {"ab)", "')' without '('"},
                            {R"(\R)", "this escape"},
                            {"\\", "an end"},
                            {R"(\xff)", "this number of a character"},
                            {R"(\x{110000})", "this number of a character"},
                            {"(?i:ss)", "a pair of letters that a ligature folds to"},
                            {"(?i:\u00e9)", "a character outside of ASCII whose case is ignored"},
                            {R"((?i:\p{L}))", "a property whose case is ignored"},
                            {"\xff", "expected a pattern in UTF-8"}}) {
    auto const message = complaint(one.pattern);
    CAPTURE(one.pattern);
    CAPTURE(message);
    CHECK(message.starts_with("file: field: "));
    CHECK(message.find(one.says) != message.npos);
  }
}

TEST_CASE("hostile patterns are refused or end") {
  CHECK(complaint(std::string(100'000, 'a')).find("expected at most 65536") != std::string::npos);
  CHECK(complaint(std::string(60'000, '(')).find("nesting so deep") != std::string::npos);
  CHECK(complaint(std::string(60'000, '[')).find("nesting so deep") != std::string::npos);
  CHECK(complaint("((a{1000}){1000}){1000}").find("is too large") != std::string::npos);
  std::string many;
  for (int i = 0; i < 300; ++i) { many += concat("[a-b", "\\u", 1000 + i, "]"); }
  CHECK(complaint(many).find("different classes") != std::string::npos);

  std::string const as(30'000, 'a');
  for (std::string const pattern : {"(?:a|a)+$b", "(?:a+)+b", "(?:a|aa)+b", "(?=(?:a+)+b)a", ".*.*.*.*b"}) {
    CAPTURE(pattern);
    regular_expression const expression{pattern, "file: field"};
    CHECK_THROWS_WITH_AS(static_cast<void>(expression.matches(as)),
                         doctest::Contains("needs too many steps on a text of 30000 bytes"), error);
  }
  regular_expression const expression{"(?:a|aa)+b|a", "file: field"};
  std::string const few(12, 'a');
  CHECK(expression.matches(few).size() == few.size());
  CHECK_THROWS_WITH_AS(static_cast<void>(expression.matches(few, {.base = 100, .per_byte = 10})),
                       doctest::Contains("needs too many steps on a text of 12 bytes"), error);
}

TEST_CASE("published patterns take time in proportion to the text, without recursion") {
  for (std::string const pattern :
       {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", R"(\s+$)",
        R"(\s?\p{L}+)", R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}|\s*[\r\n]|\s+(?!\S)|\s+)",
        "(?:ab|a| |\u4f60)+"}) {
    regular_expression const expression{pattern, "test"};
    for (std::string const unit : {"a", " ", "\n", "ab", "\u4f60", " \n", "1", "!"}) {
      CAPTURE(pattern);
      CAPTURE(unit);
      std::string text;
      while (text.size() < 1'000'000) { text += unit; }
      CHECK_NOTHROW(static_cast<void>(expression.matches(text + "x")));
    }
  }
}

TEST_CASE("an expression cuts as the scanner of the same pattern") {
  random_texts const random;
  for (
      std::string_view const pattern :
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}) {
    REQUIRE(split_pattern::knows(pattern));
    split_pattern const scanner{pattern, "test"};
    regular_expression const expression{pattern, "test"};
    for (std::uint64_t i = 0; i < 5'000; ++i) {
      auto const text = random(i);
      CAPTURE(text);
      std::vector<byte_range> pieces;
      std::size_t at = 0;
      for (auto const piece : scanner(text)) {
        pieces.push_back({at, at + piece.size()});
        at += piece.size();
      }
      CHECK(expression.matches(text) == pieces);
    }
  }
}

TEST_CASE("bytes that are not UTF-8 match nothing and end nothing") {
  CHECK(found(R"(\w+|[^a])",
              "a\xff"
              "b\xe4\xbd") == strings{"a", "b"});
}
