// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A fine-tuner of a user's own architecture, with every flag of those that the library ships.
#include <superoffload/cli/run.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include "own_architecture.hpp"

namespace so = superoffload;

template <class Device, class Precision>
using engine = so::train::engine<parallel, Device, Precision,
                                 so::zero::offloaded_or_sharded<so::cli::ranks<Device>>, so::offload::super>;

template <class Device, class Precision>
int finetune(Device& device, so::cli::rank_group<Device>* group, Precision,
             so::cli::command_line const& command) {
  so::train::trainer<engine<Device, Precision>> trainer{device, command.training, group};
  so::cli::show_plan(trainer, command);
  if (command.training.dry_run) {
    trainer.expect_fits();
    return 0;
  }
  return so::cli::report(trainer.run());
}

int main(int argc, char** argv) {
  return so::cli::run<parallel>(argc, argv, "Fine-tunes a model of type parallel.",
                                [](auto&&... run) { return finetune(run...); });
}
