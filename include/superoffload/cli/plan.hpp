// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/train/planning/described_run.hpp>
#include <superoffload/train/planning/machine_file.hpp>
#include <superoffload/train/planning/plan_file.hpp>

#include <cstdio>

namespace superoffload::cli {

/// Plans the run for the machine of --hardware: prints, writes and draws what was asked for.
template <model::architecture Architecture>
int plan_described(command_line const& command) {
  auto const& settings = command.training.offload;
  auto const machine = train::read_machine(settings.hardware, command.training.ranks);
  auto const plan = command.precision == precision_choice::bf16
                        ? train::plan_on<Architecture, bfloat16>(machine, settings, command.training)
                        : train::plan_on<Architecture, float>(machine, settings, command.training);
  std::printf("plan for %s\n%s", machine.name.c_str(), offload::describe(plan).c_str());
  std::fflush(stdout);
  train::write_plan(plan, machine.name, settings);
  offload::expect_fits(plan);
  return 0;
}

}  // namespace superoffload::cli
