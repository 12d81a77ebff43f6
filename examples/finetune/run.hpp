// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/super.hpp>
#include <superoffload/train/plan_file.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/streamed.hpp>

#include "common/attention.hpp"
#include "common/command_line.hpp"

#include <cstdio>

namespace examples {

/// A whole run: the plan, the training, and where its results are.
template <class Engine>
int finetune_with(typename Engine::device_type& device, command_line const& command) {
  namespace so = superoffload;
  auto const no_cudnn = choose_attention(device, command);
  so::train::trainer<Engine> trainer{device, command.training};
  std::fputs(trainer.plan_text().c_str(), stdout);
  if (!no_cudnn.empty()) {
    std::printf("--attn_implementation auto is flash: %s\n", no_cudnn.c_str());
  }
  std::fflush(stdout);
  so::train::write_plan(trainer.plan(), trainer.machine_name(), command.training.offload);
  if (command.training.dry_run) {
    trainer.expect_fits();
    return 0;
  }
  auto const done = trainer.run();
  if (done.median_step_time) {
    std::printf("step: %.1f ms planned with full micro-batches, %.1f ms in the median, %.2f of the plan\n",
                1e3 * done.planned_step_time, 1e3 * *done.median_step_time,
                *done.median_step_time / done.planned_step_time);
  }
  if (done.signal != 0) {
    std::printf("stopped by signal %d after step %lld; saved %s\n", done.signal,
                static_cast<long long>(done.steps), done.checkpoint.c_str());
    return static_cast<int>(so::exit_code::interrupted);
  }
  if (done.eval_before && done.eval_after) {
    std::printf("held-out loss %.4f before, %.4f after\n", *done.eval_before, *done.eval_after);
  }
  std::printf("exported to %s\n", done.exported.c_str());
  return 0;
}

/// Chooses the instantiation, once.
template <class Architecture, class Device, class Profile = superoffload::profile::none>
int finetune(Device& device, command_line const& command) {
  namespace so = superoffload;
  using so::offload::super;
  using so::zero::streamed;
  switch (command.precision) {
    case precision_choice::float32:
      return finetune_with<
          so::train::engine<Architecture, Device, so::precision::fp32, streamed, super, Profile>>(device,
                                                                                                  command);
    case precision_choice::bf16:
      return finetune_with<
          so::train::engine<Architecture, Device, so::precision::bf16, streamed, super, Profile>>(device,
                                                                                                  command);
  }
  return 1;
}

}  // namespace examples
