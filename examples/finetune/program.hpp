// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/command_line.hpp"
#include "common/device.hpp"
#include "common/program.hpp"
#include "common/ranks.hpp"
#include "finetune/architectures.hpp"

#include <type_traits>

namespace examples {

/// Fine-tunes a model of that architecture, starting ranks for it where that is asked for, or plans it for a
/// machine that is only described.
inline int finetune(architecture const& of, command_line const& command) {
  if (command.training.dry_run && !command.training.offload.hardware.empty()) {
    return of.plan(command);
  }
  if (starts_ranks(command)) {
    return start_ranks(command);
  }
  return with_device(command, [&](auto& device, auto* group) {
    if constexpr (std::is_same_v<decltype(device), cpu_device&>) {
      return of.on_cpu(device, group, command);
    } else {
      return of.on_cuda(device, group, command);
    }
  });
}

}  // namespace examples
