// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Fine-tunes any model whose architecture is known, chosen by model_type in its config.json.
#include <superoffload/core/error.hpp>
#include <superoffload/model/config.hpp>

#include "finetune/architectures.hpp"
#include "finetune/program.hpp"

#include <string>

namespace {

int finetune(int argc, char** argv) {
  auto const command = examples::read_command_line(argc, argv, "Fine-tunes a language model on Alpaca data.");
  if (!command) {
    return 0;
  }
  auto const type = superoffload::model::read_config(command->training.model).model_type;
  std::string known;
  for (auto const& of : examples::architectures) {
    if (type == of.model_type) {
      return examples::finetune(of, *command);
    }
    known += (known.empty() ? "" : ", ") + std::string{of.model_type};
  }
  superoffload::fail(superoffload::exit_code::bad_input, command->training.model.string(), ": model_type '",
                     type, "' has no trainer in this program, expected one of ", known);
}

}  // namespace

int main(int argc, char** argv) { return examples::run_program("finetune", finetune, argc, argv); }
