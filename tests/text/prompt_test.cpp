// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/text/prompt.hpp>

#include <doctest/doctest.h>

using namespace superoffload::text;

TEST_CASE("deepspeed template") {
  auto const [prompt, response] = render(prompt_template::deepspeed, "Add.", "1 2", "3");
  CHECK(prompt == "### Instruction:\nAdd.\n\n### Input:\n1 2\n\n### Response:\n");
  CHECK(response == "3");
}

TEST_CASE("the deepspeed template omits a blank input, and only a blank one") {
  std::string const without = "### Instruction:\nAdd.\n\n### Response:\n";
  for (auto const* const blank : {"", " ", "\t\r\n ", "\u00A0\u2003\u3000", "\x1c\x1f", "\u0085"}) {
    CHECK(render(prompt_template::deepspeed, "Add.", blank, "").prompt == without);
  }
  for (auto const* const present : {" x ", "\u200B", "\u180E", "\uFEFF", "\xff"}) {
    CHECK(render(prompt_template::deepspeed, "Add.", present, "").prompt.find(present) != std::string::npos);
  }
}

TEST_CASE("alpaca template") {
  CHECK(render(prompt_template::alpaca, "Add.", "1 2", "3").prompt ==
        "Below is an instruction that describes a task, paired with an input that provides further context. "
        "Write a response that appropriately completes the request.\n\n"
        "### Instruction:\nAdd.\n\n### Input:\n1 2\n\n### Response:");
  CHECK(render(prompt_template::alpaca, "Add.", "", "3").prompt ==
        "Below is an instruction that describes a task. Write a response that appropriately completes the "
        "request.\n\n"
        "### Instruction:\nAdd.\n\n### Response:");
  CHECK(render(prompt_template::alpaca, "Add.", " ", "").prompt.find("### Input:\n \n\n") !=
        std::string::npos);
}

TEST_CASE("names of templates") {
  CHECK(parse_prompt_template("deepspeed") == prompt_template::deepspeed);
  CHECK(parse_prompt_template("alpaca") == prompt_template::alpaca);
  CHECK_THROWS_WITH_AS(parse_prompt_template("chat"), "template 'chat': expected deepspeed or alpaca",
                       superoffload::error);
}

TEST_CASE("a system text stands at the beginning, in alpaca in place of the opening sentence") {
  for (std::string const input : {"", "in"}) {
    auto const section = input.empty() ? std::string{} : "### Input:\nin\n\n";
    CHECK(render(prompt_template::alpaca, "do", input, "out", "Be kind.").prompt ==
          "Be kind.\n\n### Instruction:\ndo\n\n" + section + "### Response:");
    CHECK(render(prompt_template::deepspeed, "do", input, "out", "Be kind.").prompt ==
          "Be kind.\n\n### Instruction:\ndo\n\n" + section + "### Response:\n");
  }
}
