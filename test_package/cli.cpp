// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A fine-tuner of Llamas with all flags, but for --dtype and --ranks: it trains alone and in float32.
#include <superoffload/cli/run.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/trainer.hpp>

namespace so = superoffload;

int main(int argc, char** argv) {
  return so::cli::run<so::model::llama>(
      argc, argv, "Fine-tunes a model of type llama.",
      []<class Device>(Device& device, auto*, auto, so::cli::command_line const& command) {
        so::train::trainer<so::train::engine<so::model::llama, Device>> trainer{device, command.training};
        so::cli::show_plan(trainer, command);
        return command.training.dry_run ? 0 : so::cli::report(trainer.run());
      });
}
