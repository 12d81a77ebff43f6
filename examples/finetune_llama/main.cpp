// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Fine-tunes checkpoints of the Llama 3 family.
#include "common/command_line.hpp"
#include "common/device.hpp"
#include "finetune/architectures.hpp"

namespace {

int finetune(int argc, char** argv) {
  auto const command = examples::read_command_line(argc, argv, "Fine-tunes a Llama model on Alpaca data.");
  if (!command) {
    return 0;
  }
  if (command->training.dry_run && !command->training.offload.hardware.empty()) {
    return examples::plan_llama(*command);
  }
  return examples::with_device(*command,
                               [&](auto& device) { return examples::finetune_llama(device, *command); });
}

}  // namespace

int main(int argc, char** argv) { return examples::run_program("finetune_llama", finetune, argc, argv); }
