// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "instructions.hpp"

#include <superoffload/data/examples.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <algorithm>

namespace so = superoffload;

so::data::example_set load_instructions(std::filesystem::path const& model_directory,
                                        std::filesystem::path const& file, std::size_t rows) {
  auto instructions = so::data::read_instructions(file);
  instructions.resize(std::min(rows, instructions.size()));
  return so::data::encode_examples(instructions, so::text::tokenizer::load(model_directory),
                                   {.max_length = 192});
}
