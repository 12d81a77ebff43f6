// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/command_line.hpp"
#include "common/device.hpp"
#include "finetune/architectures.hpp"

#include <type_traits>

namespace examples {

/// Fine-tunes a model of that architecture, or plans it for a machine that is only described.
inline int finetune(architecture const& of, command_line const& command) {
  if (command.training.dry_run && !command.training.offload.hardware.empty()) {
    return of.plan(command);
  }
  return with_device(command, [&](auto& device) {
    if constexpr (std::is_same_v<decltype(device), superoffload::cpu::device&>) {
      return of.on_cpu(device, command);
    } else {
      return of.on_cuda(device, command);
    }
  });
}

}  // namespace examples
