// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/attention.hpp>
#include <superoffload/cli/command_line.hpp>
#include <superoffload/cli/device.hpp>
#include <superoffload/cli/plan.hpp>
#include <superoffload/cli/program.hpp>
#include <superoffload/cli/report.hpp>
#include <superoffload/cli/start_ranks.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/train/planning/plan_file.hpp>
#include <superoffload/train/trainer.hpp>

#include <cstdio>

namespace superoffload::cli {

/// A fine-tuner of models of one architecture, from main's arguments to the exit code: reads the flags,
/// starts ranks, chooses device and precision, and returns
///   finetune(device, group, precision, command)
/// where `group` is a rank's, or null, and `precision` is an object of precision::fp32 or precision::bf16.
/// What the flags ask to plan for a machine that is only described is planned here.
template <model::architecture Architecture, class Finetune>
int run(int argc, char** argv, char const* summary, Finetune const& finetune) {
  return run_program(
      program_name(argc, argv),
      [&](int count, char** arguments) {
        auto const command = read_command_line(count, arguments, summary);
        if (!command) {
          return 0;
        }
        set_up_log(*command);
        if (plans_only(*command)) {
          tell_notes(*command);
          return plan_described<Architecture>(*command);
        }
        if (starts_ranks(*command)) {
          return start_ranks(*command);
        }
        tell_notes(*command);
        return with_device(*command, [&](auto& device, auto* group) {
          auto const why_flash = choose_attention(device, *command, model::own_family<Architecture>());
          if (!why_flash.empty() && command->training.rank == 0) {
            std::printf("--attn_implementation auto is flash: %s\n", why_flash.c_str());
          }
          return command->precision == precision_choice::float32
                     ? finetune(device, group, precision::fp32{}, *command)
                     : finetune(device, group, precision::bf16{}, *command);
        });
      },
      argc, argv);
}

/// Prints a run's plan, with --dry_run also its alternatives, and writes and draws it where that was asked
/// for: the first rank does.
template <class Core>
void show_plan(train::basic_trainer<Core> const& trainer, command_line const& command) {
  if (!trainer.is_rank_zero()) {
    return;
  }
  std::fputs(trainer.plan_text().c_str(), stdout);
  if (command.training.dry_run) {
    std::fputs(trainer.alternatives_text().c_str(), stdout);
  }
  std::fflush(stdout);
  train::write_plan(trainer.plan(), trainer.machine_name(), command.training.offload);
}

}  // namespace superoffload::cli
