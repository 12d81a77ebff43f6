// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Fine-tunes any model whose architecture is known, chosen by model_type in its config.json.
#include <superoffload/model/config.hpp>

#include "common/command_line.hpp"
#include "common/device.hpp"
#include "finetune/architectures.hpp"

namespace {

int finetune(int argc, char** argv) {
  auto const command = examples::read_command_line(argc, argv, "Fine-tunes a language model on Alpaca data.");
  if (!command) {
    return 0;
  }
  auto const type = superoffload::model::read_config(command->training.model).model_type;
  if (type == "llama") {
    if (command->training.dry_run && !command->training.offload.hardware.empty()) {
      return examples::plan_llama(*command);
    }
    return examples::with_device(*command,
                                 [&](auto& device) { return examples::finetune_llama(device, *command); });
  }
  superoffload::fail(superoffload::exit_code::bad_input, command->training.model.string(), ": model_type '",
                     type, "' has no trainer in this program, expected llama");
}

}  // namespace

int main(int argc, char** argv) { return examples::run_program("finetune", finetune, argc, argv); }
