// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "common/ranks.hpp"

#include <superoffload/comm/launcher.hpp>

namespace examples {

bool starts_ranks(command_line const& command) { return command.training.ranks > 1 && !command.run; }

int start_ranks(command_line const& command) {
#ifdef SUPEROFFLOAD_HAS_NCCL
  if (command.device == device_choice::cuda) {
    superoffload::nccl::expect_gpus(command.training.ranks);
  }
#endif
  return superoffload::comm::launch({.shared = {.ranks = command.training.ranks}}, "/proc/self/exe",
                                    command.arguments);
}

}  // namespace examples
