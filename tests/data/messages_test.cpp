// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/encode_row.hpp>
#include <superoffload/data/examples.hpp>

#include <doctest/doctest.h>

#include "scratch_file.hpp"

#include <string>
#include <vector>

using namespace superoffload;
using namespace superoffload::data;

namespace {

text::tokenizer const& qwen3() {
  static auto const tokenizer = text::tokenizer::load(SUPEROFFLOAD_TEST_DATA "/tokenizers/qwen3");
  return tokenizer;
}

encoding_options const usual{.max_length = 1000, .chat = text::chat_template::named("chatml")};

encoded_row encoded(std::string const& text, column_names const& columns = {},
                    encoding_options const& options = usual) {
  return encode_row({text, "rows.jsonl:7"}, row_format::messages, columns, 32, {qwen3(), options});
}

std::string text_of(encoded_row const& row, range part) {
  return qwen3().decode(std::span{row.ids}.subspan(static_cast<std::size_t>(part.begin),
                                                   static_cast<std::size_t>(part.size())));
}

std::string const turns = R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},)"
                          R"( {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}])";

TEST_CASE("the assistant's turns are learnt with their ends, all or the last") {
  auto const all = encoded(R"({"messages": )" + turns + "}");
  REQUIRE(all.learnt.size() == 2);
  CHECK(text_of(all, all.learnt[0]) == "b<|im_end|>");
  CHECK(text_of(all, all.learnt[1]) == "d<|im_end|>");
  auto options = usual;
  options.learn = text::learnt_turns::last;
  auto const last = encoded(R"({"messages": )" + turns + "}", {}, options);
  CHECK(last.ids == all.ids);
  REQUIRE(last.learnt.size() == 1);
  CHECK(last.learnt[0] == all.learnt[1]);
}

TEST_CASE("a conversation is cut on the right, and its turns with it") {
  auto const whole = encoded(R"({"messages": )" + turns + "}");
  auto options = usual;
  options.max_length = whole.learnt[1].begin + 1;
  auto const cut = encoded(R"({"messages": )" + turns + "}", {}, options);
  CHECK(cut.ids.size() == static_cast<std::size_t>(options.max_length));
  CHECK(cut.learnt.back() == range{whole.learnt[1].begin, options.max_length});
  CHECK(cut.uncut == whole.uncut);
}

TEST_CASE("renamed columns change nothing, not even the order of a tool's members") {
  std::string const tools = R"([{"type": "function", "function": {"name": "f", "b": 1, "a": 2}}])";
  auto const plain = encoded(R"({"tools": )" + tools + R"(, "messages": )" + turns + "}");
  CHECK(text_of(plain, {0, plain.uncut}).find(R"("name": "f", "b": 1, "a": 2)") != std::string::npos);
  auto const renamed = encoded(R"({"functions": )" + tools + R"(, "talk": )" + turns + "}",
                               {{"messages", "talk"}, {"tools", "functions"}});
  CHECK(renamed.ids == plain.ids);
  CHECK(renamed.learnt == plain.learnt);
  CHECK_THROWS_WITH(encoded(R"({"messages": [], "talk": [{"role": "user"}]})", {{"messages", "talk"}}),
                    "rows.jsonl:7: talk[0].content: expected a text, found nothing");
}

TEST_CASE("labels in several pieces become several learnt ranges of an example") {
  testing::scratch_file const file{R"({"messages": )" + turns + "}\n" + R"({"messages": )" + turns + "}\n"};
  auto const examples = read_examples(std::vector{file.path()}, {}, {qwen3(), usual});
  auto const row = encoded(R"({"messages": )" + turns + "}");
  REQUIRE(examples.size() == 2);
  REQUIRE(examples[1].learnt.size() == 2);
  CHECK(examples[1].learnt[1].begin == row.learnt[1].begin);
  CHECK(examples[1].label_tokens() == row.learnt[0].size() + row.learnt[1].size());
}

}  // namespace
