// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/added_tokens.hpp>
#include <superoffload/text/word_character.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace superoffload::text;

namespace {

/// The pieces as (text, id): an added token has its own text, without the white space that it includes.
std::vector<std::pair<std::string, int>> cut(std::vector<added_token> tokens, std::string_view text) {
  std::vector<std::pair<std::string, int>> out;
  for (auto const& [part, id] : added_token_finder{std::move(tokens)}(text)) { out.emplace_back(part, id); }
  return out;
}

using stretches = std::vector<std::pair<std::string, int>>;

}  // namespace

TEST_CASE("leftmost first, then longest") {
  std::vector<added_token> const tokens{{"<a>", 1}, {"<a>b", 2}, {"b<a", 3}, {"<a>bcd", 4}};
  CHECK(cut(tokens, "x<a>bc<a>") == stretches{{"x", -1}, {"<a>b", 2}, {"c", -1}, {"<a>", 1}});
  CHECK(cut(tokens, "b<a>b") == stretches{{"b<a", 3}, {">b", -1}});
  CHECK(cut(tokens, "<a>bcd") == stretches{{"<a>bcd", 4}});
  CHECK(cut(tokens, "<a") == stretches{{"<a", -1}});
  CHECK(cut(tokens, "").empty());
}

TEST_CASE("of equal contents the lowest id counts") {
  CHECK(cut({{"x", 7}, {"x", 5}}, "x") == stretches{{"x", 5}});
}

TEST_CASE("strips include all white space next to them, Unicode's too") {
  std::vector<added_token> const both{{.content = "<s>", .id = 1, .lstrip = true, .rstrip = true}};
  CHECK(cut(both, "a \t<s>\u00A0\nb") == stretches{{"a", -1}, {"<s>", 1}, {"b", -1}});
  CHECK(cut(both, "<s> <s> ") == stretches{{"<s>", 1}, {"<s>", 1}});
  CHECK(cut(both, "a\u200B<s>") == stretches{{"a\u200B", -1}, {"<s>", 1}});
  CHECK(cut({{.content = "<s>", .id = 1, .lstrip = true}}, "a <s> b") ==
        stretches{{"a", -1}, {"<s>", 1}, {" b", -1}});
  CHECK(cut({{.content = "<s>", .id = 1, .rstrip = true}}, "a <s> b") ==
        stretches{{"a ", -1}, {"<s>", 1}, {"b", -1}});
}

TEST_CASE("a single word has no word character next to it") {
  std::vector<added_token> const word{{.content = "cat", .id = 1, .single_word = true}};
  CHECK(cut(word, "cat, cat") == stretches{{"cat", 1}, {", ", -1}, {"cat", 1}});
  CHECK(cut(word, "cats") == stretches{{"cats", -1}});
  CHECK(cut(word, "a_cat") == stretches{{"a_cat", -1}});
  CHECK(cut(word, "\u00E9cat") == stretches{{"\u00E9cat", -1}});
  CHECK(cut(word, "cat\u0301") == stretches{{"cat\u0301", -1}});
}

TEST_CASE("word characters") {
  for (char32_t const c : {U'a', U'_', U'5', U'\u0301', U'\u2160', U'\u24B6', U'\u200D', U'\u4F60'}) {
    CHECK(is_word_character(c));
  }
  for (char32_t const c : {U' ', U'-', U'\u00BD', U'\u20AC', U'\u200B'}) {
    CHECK_FALSE(is_word_character(c));
  }
  // The number of characters that \w matches in Hugging Face tokenizers 0.23.
  int count = 0;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    count += (c < 0xd800 || c > 0xdfff) && is_word_character(c) ? 1 : 0;
  }
  CHECK(count == 144'667);
}

TEST_CASE("a stripping token of white space does not scan the same run repeatedly") {
  std::vector<added_token> const space{{.content = " ", .id = 1, .lstrip = true, .rstrip = true}};
  CHECK(added_token_finder{space}(std::string(1'000'000, ' ')).size() == 1'000'000);
}
