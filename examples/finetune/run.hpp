// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/planning/plan_file.hpp>
#include <superoffload/train/trainer.hpp>

#include "common/attention.hpp"
#include "common/command_line.hpp"
#include "common/ranks.hpp"
#include "finetune/core.hpp"

#include <cstdio>
#include <exception>
#include <optional>

namespace examples {

/// A whole run: the plan, the training, and where its results are. Of ranks, the first one speaks.
template <class Engine>
int finetune_with(typename Engine::device_type& device, typename Engine::group_type* group,
                  command_line const& command) {
  namespace so = superoffload;
  auto const no_cudnn = choose_attention(device, command);
  std::optional<so::train::trainer<Engine>> made;
  try {
    made.emplace(device, command.training, group);
  } catch (std::exception const& e) {
    if (group != nullptr) {
      group->abort(e.what());  // so that the others can say why
    }
    throw;
  }
  auto& trainer = *made;
  bool const is_rank_zero = trainer.is_rank_zero();
  if (is_rank_zero) {
    std::fputs(trainer.plan_text().c_str(), stdout);
    if (!no_cudnn.empty()) {
      std::printf("--attn_implementation auto is flash: %s\n", no_cudnn.c_str());
    }
    std::fflush(stdout);
    so::train::write_plan(trainer.plan(), trainer.machine_name(), command.training.offload);
  }
  if (command.training.dry_run) {
    trainer.expect_fits();
    return 0;
  }
  auto const done = trainer.run();
  if (!is_rank_zero) {
    return done.signal == 0 ? 0 : static_cast<int>(so::exit_code::interrupted);
  }
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
int finetune(Device& device, rank_group<Device>* group, command_line const& command) {
  namespace so = superoffload;
  using so::offload::super;
  switch (command.precision) {
    case precision_choice::float32:
      return finetune_with<
          so::train::engine<Architecture, Device, so::precision::fp32, store<Device>, super, Profile>>(
          device, group, command);
    case precision_choice::bf16:
      return finetune_with<
          so::train::engine<Architecture, Device, so::precision::bf16, store<Device>, super, Profile>>(
          device, group, command);
  }
  return 1;
}

}  // namespace examples
