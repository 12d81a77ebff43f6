// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/shared.hpp>
#include <superoffload/cpu/device.hpp>
#ifdef EXAMPLES_CUDA
#include <superoffload/cuda/device.hpp>
#ifdef SUPEROFFLOAD_HAS_NCCL
#include <superoffload/nccl/communicator.hpp>
#else
#include <superoffload/comm/single.hpp>
#endif
#endif

#include "common/command_line.hpp"

namespace superoffload::cuda {
class device;
}

namespace examples {

using cpu_device = superoffload::cpu::device;
using cuda_device = superoffload::cuda::device;

/// The kind of group that ranks on devices of a kind make.
template <class Device>
struct rank_kind;
template <>
struct rank_kind<cpu_device> {
  using type = superoffload::comm::shared;
  using group = superoffload::comm::shared_communicator<cpu_device>;
};
#ifndef EXAMPLES_CUDA
template <>
struct rank_kind<cuda_device> {
  using group = void;  // of no use
};
#elif defined(SUPEROFFLOAD_HAS_NCCL)
template <>
struct rank_kind<cuda_device> {
  using type = superoffload::nccl::gpus;
  using group = superoffload::nccl::communicator;
};
#else
template <>
struct rank_kind<cuda_device> {  // ranks are refused
  using type = superoffload::comm::single;
  using group = superoffload::comm::single_communicator<cuda_device>;
};
#endif
template <class Device>
using rank_group = typename rank_kind<Device>::group;

/// Must this process start the ranks, instead of being one of them?
bool starts_ranks(command_line const& command);

/// Starts this program again, once for each rank, and waits for them. \returns the exit code of the run.
int start_ranks(command_line const& command);

}  // namespace examples
