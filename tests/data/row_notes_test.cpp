// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/examples.hpp>
#include <superoffload/data/row_notes.hpp>

#include <doctest/doctest.h>

#include "scratch_file.hpp"

#include <string>
#include <vector>

using namespace superoffload;
using namespace superoffload::data;

namespace {

encoded_row const learnt{.ids = {1, 2, 3}, .learnt = {{1, 3}}, .uncut = 3};
encoded_row const prompt_alone{.ids = {1, 2, 3}, .learnt = {{0, 1}}, .uncut = 3};
encoded_row const cut_to_nothing{.ids = {1, 2, 3}, .learnt = {{3, 3}}, .uncut = 9};
encoded_row const at_zero{.ids = {1, 2, 3}, .learnt = {{1, 3}}, .uncut = 3, .learnt_at_zero = 1};

/// Rows at a:1, a:2, ...
row_notes notes_of(std::vector<encoded_row> const& rows) {
  row_notes notes;
  for (std::size_t i = 0; i < rows.size(); ++i) { notes.add({{}, concat("a:", i + 1)}, rows[i]); }
  return notes;
}

TEST_CASE("rows that a user should know of, by the first of their kind") {
  CHECK(notes_of({learnt, learnt}).lines().empty());
  auto const lines =
      notes_of({learnt, cut_to_nothing, prompt_alone, at_zero, prompt_alone, prompt_alone}).lines();
  CHECK(lines ==
        std::vector<std::string>{"a:3: nothing is learnt in this row; the first of 3 such rows",
                                 "a:2: the row is cut before what is learnt in it",
                                 "a:4: a turn of weight 0 is learnt; --learn weighted leaves it out"});
}

TEST_CASE("a data set without a label is refused with its cause") {
  row_notes{}.expect_labels(3);
  notes_of({prompt_alone, learnt}).expect_labels(3);
  notes_of({cut_to_nothing, learnt}).expect_labels(3);
  CHECK_THROWS_WITH(
      notes_of({prompt_alone, prompt_alone, prompt_alone}).expect_labels(3),
      "a:1: nothing is learnt in this row, nor in the other 2; expected an answer: a message of the "
      "assistant, an output, or labels other than -100");
  CHECK_THROWS_WITH(notes_of({prompt_alone}).expect_labels(3),
                    "a:1: nothing is learnt in this row; expected an answer: a message of the assistant, an "
                    "output, or labels other than -100");
  CHECK_THROWS_WITH(
      notes_of({prompt_alone, cut_to_nothing}).expect_labels(3),
      "max_length: 3 leaves none of the 2 rows a label: the prompts fill them; expected a larger "
      "max_length, or label_mask none");
}

TEST_CASE("what read_examples finds in a file") {
  auto const tokenizer = text::tokenizer::load(SUPEROFFLOAD_TEST_DATA "/tokenizers/qwen3");
  encoding_options options{.chat = text::chat_template::named("chatml")};
  std::string const user = R"({"messages": [{"role": "user", "content": "a"})";
  testing::scratch_file const some{user + "]}\n" + user +
                                   R"(, {"role": "assistant", "content": "b", "weight": 0}]})" + "\n"};
  std::vector<std::string> notes;
  CHECK(read_examples(std::vector{some.path()}, {}, {tokenizer, options}, &notes).size() == 2);
  REQUIRE(notes.size() == 2);
  CHECK(notes[0] == some.path().string() + ":1: nothing is learnt in this row");
  CHECK(notes[1] ==
        some.path().string() + ":2: a turn of weight 0 is learnt; --learn weighted leaves it out");
  options.learn = text::learnt_turns::weighted;
  auto const without = some.path().string() +
                       ":1: nothing is learnt in this row, nor in the other 1; expected an answer: a message "
                       "of the assistant, an output, or labels other than -100";
  CHECK_THROWS_WITH(read_examples(std::vector{some.path()}, {}, {tokenizer, options}), without.c_str());
}

}  // namespace
