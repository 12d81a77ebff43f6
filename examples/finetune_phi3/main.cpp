// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Fine-tunes checkpoints with model_type phi3.
#include <superoffload/cli/run.hpp>
#include <superoffload/model/phi3.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include "core/core.hpp"

namespace so = superoffload;
using architecture = so::model::phi3;

/// Alone, it may have weights and gradients in host memory; a rank has a shard of everything.
template <class Device, class Precision>
using engine = so::train::engine<architecture,                                            //
                                 Device, Precision,                                       //
                                 so::zero::offloaded_or_sharded<so::cli::ranks<Device>>,  //
                                 so::offload::super,         // where state lives is planned
                                 so::recompute::configured,  // by --activation_checkpointing
                                 so::cli::profile_of<Device>>;

/// A run on one device, or that of one rank of a group.
template <class Device, class Precision>
int finetune(Device& device, so::cli::rank_group<Device>* group, Precision,
             so::cli::command_line const& command) {
  // Reads configuration and data, lays the model out and plans; allocates nothing large.
  so::train::trainer<engine<Device, Precision>> trainer{device, command.training, group};
  so::cli::show_plan(trainer, command);
  if (command.training.dry_run) {
    trainer.expect_fits();
    return 0;
  }

  trainer.start();           // from the weights of --model, or from the checkpoint of --resume
  while (trainer.step()) {}  // and evaluates and saves where that is due
  return so::cli::report(trainer.finish());  // which exports the model
}

int main(int argc, char** argv) {
  return so::cli::run<architecture>(argc, argv, "Fine-tunes a model of type phi3 on your data.",
                                    [](auto&&... run) { return finetune(run...); });
}
