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
template <model::architecture Architecture, element T>
int plan_described(command_line const& command) {
  auto const& options = command.training;
  auto const machine =
      within_budget(train::read_machine(options.offload.hardware, options.ranks), options.offload);
  auto const plan = train::plan_on<Architecture, T>(machine, options.offload, options);
  auto const others = train::alternatives_on<Architecture, T>(machine, options, plan);
  std::printf("plan for %s\n%s%s", machine.name.c_str(), offload::describe(plan).c_str(),
              train::describe(others).c_str());
  std::fflush(stdout);
  train::write_plan(plan, machine.name, options.offload);
  offload::expect_fits(plan);
  return 0;
}

template <model::architecture Architecture>
int plan_described(command_line const& command) {
  return command.precision == precision_choice::float32 ? plan_described<Architecture, float>(command)
                                                        : plan_described<Architecture, bfloat16>(command);
}

}  // namespace superoffload::cli
