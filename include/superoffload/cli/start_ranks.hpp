// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/comm/launcher.hpp>
#include <superoffload/cpu/cores.hpp>
#ifdef SUPEROFFLOAD_HAS_NCCL
#include <superoffload/nccl/communicator.hpp>
#endif

namespace superoffload::cli {

/// Does this process start the ranks? Else it is one, or the only one.
inline bool starts_ranks(command_line const& command) { return command.training.ranks > 1 && !command.run; }

/// Starts this program again, once for each rank, and waits for them. \returns the exit code of the run. Throws
/// `error` (bad_input) for more ranks than this machine can run.
inline int start_ranks(command_line const& command) {
  if (command.device != device_choice::cuda) {
    int const cores = cpu::usable_cores(), most = 16 * cores;
    expect(command.training.ranks <= most, exit_code::bad_input, "--ranks is ", command.training.ranks,
           ", but this machine has ", cores, cores == 1 ? " core" : " cores", "; expected at most ", most,
           ", 16 for each core");
  }
#ifdef SUPEROFFLOAD_HAS_NCCL
  if (command.device == device_choice::cuda) {
    nccl::expect_gpus(command.training.ranks);
  }
#endif
  return comm::launch({.shared = {.ranks = command.training.ranks}}, "/proc/self/exe", command.arguments);
}

}  // namespace superoffload::cli
