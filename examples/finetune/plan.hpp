// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/planning/described_run.hpp>
#include <superoffload/train/planning/machine_file.hpp>
#include <superoffload/train/planning/plan_file.hpp>

#include "common/command_line.hpp"

#include <cstdio>

// Compiled once for all architectures, in plan.cpp.
namespace superoffload::train {
extern template offload::plan plan_on<float>(model::view<described_device, float>, offload::machine const&,
                                             offload::settings const&, training_options const&);
extern template offload::plan plan_on<bfloat16>(model::view<described_device, bfloat16>,
                                                offload::machine const&, offload::settings const&,
                                                training_options const&);
}  // namespace superoffload::train

namespace examples {

/// Plans the run for the machine of --hardware: prints, writes and draws what was asked for.
template <class Architecture>
int plan_described(command_line const& command) {
  namespace so = superoffload;
  auto const& settings = command.training.offload;
  auto const machine = so::train::read_machine(settings.hardware, command.training.ranks);
  auto const plan = command.precision == precision_choice::bf16
                        ? so::train::plan_on<Architecture, so::bfloat16>(machine, settings, command.training)
                        : so::train::plan_on<Architecture, float>(machine, settings, command.training);
  std::printf("plan for %s\n%s", machine.name.c_str(), so::offload::describe(plan).c_str());
  std::fflush(stdout);
  so::train::write_plan(plan, machine.name, settings);
  so::offload::expect_fits(plan);
  return 0;
}

}  // namespace examples
