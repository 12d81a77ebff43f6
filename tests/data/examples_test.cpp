// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/examples.hpp>

#include <doctest/doctest.h>

#include "numbered_examples.hpp"
#include "scratch_file.hpp"

#include <string>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using ids = std::vector<std::int32_t>;

/// A beginning of text (1), then one id a byte; but "hi" is one id (2).
ids encode(std::string_view text) {
  ids out{1};
  for (char const c : text) {
    if (c == 'i' && out.back() == 'h') {
      out.back() = 2;
    } else {
      out.push_back(static_cast<unsigned char>(c));
    }
  }
  return out;
}

ids row_of(example_set const& examples, std::int64_t row) {
  return {examples[row].tokens.begin(), examples[row].tokens.end()};
}

std::string complaint(std::vector<instruction> const& rows, std::optional<std::int32_t> eos,
                      encoding_options const& options) {
  try {
    encode_examples(rows, encode, eos, options);
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    return e.what();
  }
  return "no error";
}

std::vector<instruction> const greeting{{"Greet.", "", "hi"}, {"Greet.", "Ann", "hi Ann"}};
std::string const prompt = "### Instruction:\nGreet.\n\n### Response:\n";

TEST_CASE("prompt and response are one text; end-of-text behind, the prompt's ids masked") {
  encoding_options options{.prompt_template = text::prompt_template::deepspeed, .max_length = 100};
  auto const examples = encode_examples(greeting, encode, 3, options);
  REQUIRE(examples.size() == 2);
  auto expected = encode(prompt + "hi");
  expected.push_back(3);
  CHECK(row_of(examples, 0) == expected);
  CHECK(testing::masked_prefix(examples[0]) == static_cast<std::int64_t>(encode(prompt).size()));
  CHECK(examples[0].label_tokens() == 2);
  CHECK(row_of(examples, 1) == [] {
    auto row = encode("### Instruction:\nGreet.\n\n### Input:\nAnn\n\n### Response:\nhi Ann");
    row.push_back(3);
    return row;
  }());

  options.append_eos = false;
  options.mask_prompt = false;
  auto const plain = encode_examples(greeting, encode, std::nullopt, options);
  CHECK(row_of(plain, 0) == encode(prompt + "hi"));
  CHECK(testing::masked_prefix(plain[0]) == 0);
}

TEST_CASE("rows are cut on the right, the end-of-text and the mask with them") {
  auto const length = static_cast<std::int64_t>(encode(prompt).size());
  encoding_options options{.prompt_template = text::prompt_template::deepspeed};
  auto const cut = [&](std::int64_t max_length) {
    options.max_length = max_length;
    return encode_examples(greeting, encode, 3, options);
  };
  CHECK(cut(length + 2)[0].tokens.back() == 3);
  CHECK(cut(length + 1)[0].tokens.back() == 2);
  CHECK(cut(length + 1)[1].label_tokens() == 0);
  CHECK(cut(length + 1).rows_without_labels() == 1);
  CHECK(complaint(greeting, 3, options) == "no error");
  options.max_length = length;
  auto const message = complaint(greeting, 3, options);
  CHECK_MESSAGE(
      message.starts_with("max_length: " + std::to_string(length) + " leaves none of the 2 rows a label"),
      message);
  options.mask_prompt = false;
  CHECK(testing::masked_prefix(cut(length)[0]) == 0);
  CHECK(cut(length)[0].length() == length);
  options.max_length = 1;
  CHECK(complaint(greeting, 3, options).starts_with("max_length: 1 leaves none"));
  options.max_length = 0;
  CHECK(complaint(greeting, 3, options).starts_with("max_length: 0, expected"));
}

TEST_CASE("a mask is never longer than its row, though the prompt alone may have more ids") {
  auto const merging = [](std::string_view text) {
    return text.ends_with("y") ? ids{1, 2} : ids{1, 3, 4, 5, 6};
  };
  std::vector<instruction> const rows{{"x", "", "y"}, {"x", "", "z"}};
  encoding_options const options{.max_length = 100};
  auto const examples = encode_examples(rows, merging, 7, options);
  CHECK(row_of(examples, 0) == ids{1, 2, 7});
  CHECK(testing::masked_prefix(examples[0]) == 3);
  CHECK(examples[0].label_tokens() == 0);
  CHECK(testing::masked_prefix(examples[1]) == 5);
  CHECK(examples[1].label_tokens() == 1);
}

TEST_CASE("an end-of-text that the tokenizer does not have") {
  CHECK(complaint(greeting, std::nullopt, {})
            .starts_with("append_eos: the tokenizer names no end-of-text token"));
}

TEST_CASE("the threads do not show") {
  std::vector<instruction> rows;
  for (int i = 0; i < 301; ++i) {
    rows.push_back({std::string(static_cast<std::size_t>(i % 17), 'a'), "", std::to_string(i)});
  }
  encoding_options options{.max_length = 400, .threads = 1};
  auto const one = encode_examples(rows, encode, 3, options);
  REQUIRE(one.size() == 301);
  for (int const threads : {0, 2, 3, 64}) {
    options.threads = threads;
    auto const many = encode_examples(rows, encode, 3, options);
    REQUIRE(many.size() == one.size());
    for (std::int64_t row = 0; row < one.size(); ++row) {
      CHECK(row_of(many, row) == row_of(one, row));
      CHECK(testing::masked_prefix(many[row]) == testing::masked_prefix(one[row]));
    }
  }
}

TEST_CASE("what the tokenizer throws arrives") {
  std::vector<instruction> const rows(100, {"x", "", "y"});
  auto const refuse = [](std::string_view) -> ids { fail(exit_code::bad_input, "refused"); };
  CHECK_THROWS_WITH(encode_examples(rows, refuse, 3, {.threads = 2}), "refused");
}

TEST_CASE("shards are read one after the other, as one file would be") {
  std::vector<std::string> rows;
  for (int i = 0; i < 20; ++i) { rows.push_back(concat("{\"text\": \"", i, "\"}")); }
  std::string lines, list = "[";
  for (int i = 0; i < 20; ++i) {
    if (i < 11) {
      lines += rows[static_cast<std::size_t>(i)] + "\n";
    } else {
      list += (i == 11 ? "" : ",") + rows[static_cast<std::size_t>(i)];
    }
  }
  std::string all;
  for (auto const& row : rows) { all += row + "\n"; }
  testing::scratch_file const first{lines}, second{list + "]"}, whole{all};
  std::vector const shards{first.path(), second.path()}, one{whole.path()};
  row_encoder const encoder{encode, 3, {}};
  auto const from_shards = read_examples(shards, {}, encoder);
  auto const from_one = read_examples(one, {}, encoder);
  REQUIRE(from_shards.size() == 20);
  for (std::int64_t row = 0; row < 20; ++row) { CHECK(row_of(from_shards, row) == row_of(from_one, row)); }
  CHECK(row_of(from_shards, 12) == ids{1, '1', '2', 3});
  CHECK(read_examples(shards, {.percentage = 60.0}, encoder).size() == 12);
  CHECK(count_rows(shards, {.percentage = 60.0}) == 12);
  CHECK(count_rows(shards, {.limits = {.rows = 20}}) == 20);
  CHECK_THROWS_AS(count_rows(shards, {.limits = {.rows = 19}}), error);
  testing::scratch_file const other{R"({"prompt": "a", "completion": "b"})"};
  std::vector const mixed{first.path(), other.path()};
  try {
    read_examples(mixed, {}, encoder);
    CHECK(false);
  } catch (error const& e) {
    CHECK(std::string{e.what()} == other.path().string() + ":1: field 'text' is missing");
  }
}

}  // namespace
