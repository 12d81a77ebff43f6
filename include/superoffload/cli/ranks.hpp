// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/comm/launcher.hpp>
#include <superoffload/comm/shared.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/device.hpp>
#ifdef SUPEROFFLOAD_HAS_CUDA
#include <superoffload/cuda/device.hpp>
#ifdef SUPEROFFLOAD_HAS_NCCL
#include <superoffload/nccl/communicator.hpp>
#else
#include <superoffload/comm/single.hpp>
#endif
#endif

namespace superoffload::cli {

namespace detail {
template <class Device>
struct ranks_of;
template <>
struct ranks_of<cpu::device> {
  using kind = comm::shared;
};
#ifdef SUPEROFFLOAD_HAS_CUDA
template <>
struct ranks_of<cuda::device> {
#ifdef SUPEROFFLOAD_HAS_NCCL
  using kind = nccl::gpus;
#else
  using kind = comm::single;  // ranks are refused
#endif
};
#endif
}  // namespace detail

/// The group of ranks on such devices, as a sharding policy names it.
template <class Device>
using ranks = typename detail::ranks_of<Device>::kind;
template <class Device>
using rank_group = typename ranks<Device>::template communicator<Device>;

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
