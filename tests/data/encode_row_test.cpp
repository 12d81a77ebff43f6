// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/encode_row.hpp>

#include <doctest/doctest.h>

#include "data/complaint.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using ids = std::vector<std::int32_t>;
using ranges = std::vector<range>;

/// A beginning of text (1), then one id a byte.
ids encode(std::string_view text) {
  ids out{1};
  for (char const c : text) { out.push_back(static_cast<unsigned char>(c)); }
  return out;
}

ids closed(std::string_view text) {
  auto out = encode(text);
  out.push_back(3);
  return out;
}

encoding_options const usual{
    .prompt_template = text::prompt_template::deepspeed, .max_length = 100, .vocabulary = 256};

encoded_row encoded(std::string text, row_format format, column_names const& columns = {},
                    encoding_options const& options = usual) {
  return encode_row({std::move(text), "rows.jsonl:7"}, format, columns, 32, {encode, 3, options});
}

std::string complaint(std::string const& text, row_format format, column_names const& columns = {}) {
  return testing::complaint_of([&] { encoded(text, format, columns); });
}

TEST_CASE("alpaca: the output is learnt") {
  auto const one = encoded(R"({"instruction": "i", "input": null, "output": "o"})", row_format::alpaca);
  std::string const prompt = "### Instruction:\ni\n\n### Response:\n";
  CHECK(one.ids == closed(prompt + "o"));
  CHECK(one.learnt == ranges{{static_cast<std::int64_t>(prompt.size()) + 1, one.uncut}});
  CHECK(encoded(R"({"q": "i", "instruction": "x", "output": "o", "history": []})", row_format::alpaca,
                {{"instruction", "q"}})
            .ids == one.ids);
  CHECK(encoded(R"({"system": "s", "instruction": "i", "output": "o"})", row_format::alpaca).ids ==
        closed("s\n\n" + prompt + "o"));
}

TEST_CASE("prompt_completion: the completion is learnt, right behind the prompt") {
  auto const one = encoded(R"({"prompt": "ab", "completion": "cd"})", row_format::prompt_completion);
  CHECK(one.ids == closed("abcd"));
  CHECK(one.learnt == ranges{{3, 6}});
  auto all = usual;
  all.mask_prompt = false;
  CHECK(encoded(R"({"prompt": "ab", "completion": "cd"})", row_format::prompt_completion, {}, all).learnt ==
        ranges{{0, 6}});
}

TEST_CASE("text: all is learnt; what is too long is cut") {
  auto const one = encoded(R"({"text": "abc"})", row_format::text);
  CHECK(one.ids == closed("abc"));
  CHECK(one.learnt == ranges{{0, 5}});
  CHECK(one.uncut == 5);
  auto few = usual;
  few.max_length = 2;
  auto const cut = encoded(R"({"text": "abc"})", row_format::text, {}, few);
  CHECK(cut.ids == ids{1, 'a'});
  CHECK(cut.learnt == ranges{{0, 2}});
  CHECK(cut.uncut == 5);
}

TEST_CASE("tokenized: the ids as they are; labels say what is learnt, the attention mask what is padding") {
  auto const plain = encoded(R"({"input_ids": [5, 0, 255]})", row_format::tokenized);
  CHECK(plain.ids == ids{5, 0, 255});
  CHECK(plain.learnt == ranges{{0, 3}});
  auto const labelled =
      encoded(R"({"input_ids": [5, 6, 7, 8], "labels": [-100, 6, -100, 8]})", row_format::tokenized);
  CHECK(labelled.ids == ids{5, 6, 7, 8});
  CHECK(labelled.learnt == ranges{{1, 2}, {3, 4}});
  auto const padded =
      encoded(R"({"input_ids": [0, 0, 5, 6, 0], "attention_mask": [0, 0, 1, 1, 0]})", row_format::tokenized);
  CHECK(padded.ids == ids{5, 6});
  CHECK(padded.learnt == ranges{{0, 2}});
  auto const both =
      encoded(R"({"input_ids": [0, 5, 6, 7], "labels": [-100, -100, 6, 7], "attention_mask": [0, 1, 1, 1]})",
              row_format::tokenized);
  CHECK(both.ids == ids{5, 6, 7});
  CHECK(both.learnt == ranges{{1, 3}});
}

TEST_CASE("a row that does not fit its format is refused by its field") {
  struct refusal {
    row_format format;
    char const* text;
    char const* says;
  };
  for (auto const& one : {
           refusal{row_format::alpaca, R"({"instruction": "a"})", "field 'output' is missing"},
           {row_format::alpaca, R"({"output": "a"})", "field 'instruction' is missing"},
           {row_format::alpaca, R"({"instruction": 1, "output": "a"})",
            "instruction: expected a string, found 1"},
           {row_format::alpaca, R"({"instruction": "a", "output": null})",
            "output: expected a string, found null"},
           {row_format::alpaca, R"({"instruction": "a", "input": ["b"], "output": "c"})",
            "input: expected a string, found array"},
           {row_format::alpaca, R"({"instruction": "a", "output": "c", "history": [["a", "b"]]})",
            "history: 1 earlier turns, expected none"},
           {row_format::alpaca, R"({"instruction": "a", "output": "c", "history": "a"})",
            "history: expected an array, found \"a\""},
           {row_format::alpaca, R"({"instruction": "a", "output": "c", "system": {}})",
            "system: expected a string, found object"},
           {row_format::alpaca, "[]", "expected an object"},
           {row_format::alpaca, "{\"instruction\": ", "byte 17: expected valid JSON"},
           {row_format::prompt_completion, R"({"prompt": "a"})", "field 'completion' is missing"},
           {row_format::prompt_completion, R"({"completion": "a"})", "field 'prompt' is missing"},
           {row_format::prompt_completion, R"({"prompt": [{"role": "user"}], "completion": "a"})",
            "prompt: expected a string, found array"},
           {row_format::prompt_completion, R"({"prompt": "a", "completion": null})",
            "completion: expected a string, found null"},
           {row_format::prompt_completion, R"({"prompt": "a", "completion": {}})",
            "completion: expected a string, found object"},
           {row_format::prompt_completion, R"("a")", "expected an object"},
           {row_format::prompt_completion, R"({"prompt": "a", "prompt": "b", "completion": ""})",
            "field 'prompt' appears twice"},
           {row_format::text, R"({"txt": "a"})", "field 'text' is missing"},
           {row_format::text, R"({"text": null})", "text: expected a string, found null"},
           {row_format::text, R"({"text": 3})", "text: expected a string, found 3"},
           {row_format::text, R"({"text": ["a"]})", "text: expected a string, found array"},
           {row_format::text, R"({"text": "\ud800"})", "byte 17: expected valid JSON"},
           {row_format::text, "7", "expected an object"},
           {row_format::text, "{\"text\": \"a\" \"b\"}", "byte 16: expected valid JSON"},
           {row_format::tokenized, "{}", "field 'input_ids' is missing"},
           {row_format::tokenized, R"({"input_ids": null})", "input_ids: expected an array, found null"},
           {row_format::tokenized, R"({"input_ids": "1 2"})", "input_ids: expected an array, found \"1 2\""},
           {row_format::tokenized, R"({"input_ids": []})", "input_ids: expected at least one id"},
           {row_format::tokenized, R"({"input_ids": [1, 256]})",
            "input_ids[1]: expected an integer from 0 to 255, found 256"},
           {row_format::tokenized, R"({"input_ids": [-1]})",
            "input_ids[0]: expected an integer from 0 to 255, found -1"},
           {row_format::tokenized, R"({"input_ids": [1.0]})", "input_ids[0]: expected an integer, found 1.0"},
           {row_format::tokenized, R"({"input_ids": [18446744073709551615]})",
            "input_ids[0]: expected an integer, found 18446744073709551615"},
           {row_format::tokenized, R"({"input_ids": [true]})",
            "input_ids[0]: expected an integer, found true"},
           {row_format::tokenized, R"({"input_ids": [[1]]})",
            "input_ids[0]: expected an integer, found array"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "labels": [1]})",
            "labels: 1 elements, expected 2 as in input_ids"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "labels": 1})", "labels: expected an array"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "labels": [-100, 3]})",
            "labels[1]: expected 2 as in input_ids, or -100"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "labels": [-1, 2]})",
            "labels[0]: expected 1 as in input_ids, or -100"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "labels": [-101, 2]})",
            "labels[0]: expected an integer from -100"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "labels": [null, 2]})",
            "labels[0]: expected an integer, found null"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "attention_mask": [1, 1, 1]})",
            "attention_mask: 3 elements, expected 2"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "attention_mask": [1, 2]})",
            "attention_mask[1]: expected an integer from 0 to 1, found 2"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "attention_mask": [0, 0]})",
            "attention_mask: expected ones without a gap"},
           {row_format::tokenized, R"({"input_ids": [1, 2, 3], "attention_mask": [1, 0, 1]})",
            "attention_mask: expected ones without a gap"},
           {row_format::tokenized, R"({"input_ids": [1, 2], "attention_mask": {}})",
            "attention_mask: expected an array, found object"},
       }) {
    CAPTURE(std::string{one.text});
    auto const found = complaint(one.text, one.format);
    CHECK_MESSAGE(found.starts_with(one.says), found);
  }
  CHECK(complaint(R"({"q": 1, "a": "b"})", row_format::alpaca, {{"instruction", "q"}, {"output", "a"}})
            .starts_with("q: expected a string"));
}

TEST_CASE("a row that makes no token is refused") {
  auto const none = [](std::string_view) { return ids{}; };
  row_encoder const encoder{none, std::nullopt, {.append_eos = false}};
  CHECK_THROWS_WITH(encode_row({R"({"text": ""})", "a:1"}, row_format::text, {}, 32, encoder),
                    "a:1: the row is empty: it makes no token");
}

}  // namespace
