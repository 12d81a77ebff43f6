// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Fine-tunes checkpoints of the Llama 3 family.
#include "common/command_line.hpp"
#include "finetune/architectures.hpp"

namespace {

int finetune(int argc, char** argv) {
  auto const command = examples::read_command_line(argc, argv, "Fine-tunes a Llama model on Alpaca data.");
  return command ? examples::finetune_llama(*command) : 0;
}

}  // namespace

int main(int argc, char** argv) { return examples::run_program("finetune_llama", finetune, argc, argv); }
