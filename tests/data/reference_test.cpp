// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The data of the training runs in models/*/expected.json, which were made with Hugging Face transformers.
#include <superoffload/data/examples.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/io/json.hpp>

#include <doctest/doctest.h>

#include "numbered_examples.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using io::json;

/// The documents of a step as the file has them: ids and how many are masked.
void check_first_step(example_set const& examples, json const& expected) {
  std::int64_t row = 0;
  auto const check_row = [&](json const& row_expected) {
    auto const found = examples[row++];
    CHECK(std::vector<std::int32_t>(found.tokens.begin(), found.tokens.end()) ==
          row_expected.at("input_ids").get<std::vector<std::int32_t>>());
    CHECK(testing::masked_prefix(found) == row_expected.value("masked_prefix", 0));
  };
  for (auto const& line : expected) {
    if (line.is_array()) {
      for (auto const& document : line) { check_row(document); }
    } else {
      check_row(line);
    }
  }
}

TEST_CASE("the reference runs see these ids and labels") {
  auto const rows = read_instructions(SUPEROFFLOAD_TEST_DATA "/../../examples/data/alpaca_en_demo.json");
  for (auto const* const model : {"llama", "llama_tied"}) {
    auto const directory = std::filesystem::path{SUPEROFFLOAD_TEST_DATA "/models"} / model;
    auto const expected = io::read_json(directory / "expected.json", {std::size_t{64} << 20, 32});
    auto const tokenizer = text::tokenizer::load(directory);
    for (auto const& run : expected.at("train")) {
      auto const& args = run.at("args");
      CAPTURE(std::string{model});
      CAPTURE(args.at("name").get<std::string>());
      REQUIRE(args.at("first_row") == 0);
      auto const max_length = args.at("max_length").get<std::int64_t>();
      bool const packing = args.at("packing").get<bool>();
      auto const examples = encode_examples(rows, tokenizer,
                                            {.prompt_template = text::prompt_template::deepspeed,
                                             .mask_prompt = args.at("label_mask") == "prompt",
                                             .append_eos = args.at("eos").get<bool>(),
                                             .max_length = max_length});
      check_first_step(examples, run.at("first_step"));

      loader from{examples,
                  {.batch_size = args.at("batch").get<std::int64_t>(),
                   .micro_batches = args.at("accumulation").get<std::int64_t>(),
                   .shuffle = false,
                   .packing = packing,
                   .padding = pad_to::longest,
                   .max_length = max_length}};
      for (auto const& labels : run.at("label_tokens")) {
        auto const step = from.next();
        CHECK(step.label_tokens == labels.get<std::int64_t>());
        std::int64_t found = 0;
        for (auto const& part : step.micro_batches) { found += part.label_tokens(); }
        CHECK(found == step.label_tokens);
      }

      // The first step's batch is made of exactly these rows.
      from.seek({});
      auto const step = from.next();
      std::size_t line = 0;
      std::int64_t row = 0;
      for (auto const& part : step.micro_batches) {
        for (std::int64_t d = 0; d < part.documents(); ++d) {
          auto const begin = part.starts[static_cast<std::size_t>(d)];
          auto const tokens = examples[row++].tokens;
          CHECK(std::equal(tokens.begin(), tokens.end(), part.tokens.begin() + begin));
          ++line;
        }
      }
      std::size_t documents = 0;
      for (auto const& of_line : run.at("first_step")) { documents += packing ? of_line.size() : 1; }
      CHECK(line == documents);
    }
  }
}

}  // namespace
