// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/cli/join.hpp>
#include <superoffload/cli/ranks.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/numa.hpp>
#include <superoffload/core/profile.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/train/planning/host_share.hpp>
#ifdef SUPEROFFLOAD_HAS_CUDA
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#ifdef SUPEROFFLOAD_NVTX
#include <superoffload/cuda/nvtx.hpp>
#endif
#endif

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>

namespace superoffload::cli {

namespace detail {
template <class Device>
struct profile_of {
  using type = profile::none;
};
#if defined(SUPEROFFLOAD_HAS_CUDA) && defined(SUPEROFFLOAD_NVTX)
template <>
struct profile_of<cuda::device> {
  using type = profile::nvtx;
};
#endif

/// Why --device auto is the CPU, which rank 0 says for all.
inline void say_no_gpu(command_line const& command, char const* reason) {
  if (command.training.rank == 0) {
    std::printf("--device auto is the cpu: %s\n", reason);
  }
}

/// Returns body(device, &group). If it throws, the group is aborted with the reason.
template <class Device, class Body>
int as_rank(Device& device, rank_group<Device>& group, Body const& body) {
  try {
    return body(device, &group);
  } catch (std::exception const& e) {
    group.abort(e.what());
    throw;
  }
}

template <class Body>
int with_cpu_rank(command_line const& command, Body const& body) {
  rank_group<cpu::device> group{join(*command.run)};
  comm::host_group const ranks{group};
  if (command.bind_cores) {
    train::bind_cores(ranks, -1);
  }
  cpu::device device{std::min(cpu::default_threads(), train::cores_of_rank(ranks))};
  return as_rank(device, group, body);
}
#ifdef SUPEROFFLOAD_HAS_NCCL
template <class Body>
int with_cuda_rank(command_line const& command, Body const& body) {
  auto member = join(*command.run);
  nccl::options const options{.ranks_of_host = ranks_of_host(*command.run, *member)};
  cuda::device device{nccl::gpu_of(*command.run)};
  rank_group<cuda::device> group{std::move(member), device, options};
  if (command.bind_cores) {
    train::bind_cores(comm::host_group{group}, node_of_pci(device.pci_address()));
  }
  return as_rank(device, group, body);
}
#endif

/// Do the ranks of a launcher take GPUs with --device auto? All of them see the same GPUs, or the user has to
/// say. A launcher that shows each rank one GPU cannot be told from a host with one GPU.
inline bool ranks_have_gpus(command_line const& command) {
#if defined(SUPEROFFLOAD_HAS_CUDA) && defined(SUPEROFFLOAD_HAS_NCCL)
  int found = 0;
  try {
    found = cuda::device::count();
  } catch (error const& e) {
    if (e.code() != exit_code::device && e.code() != exit_code::driver) {
      throw;
    }
    say_no_gpu(command, e.what());
    return false;
  }
  expect(found == 0 || found >= command.run->local_ranks, exit_code::bad_input, command.run->launcher,
         " has started ", command.run->local_ranks, " ranks on this host, which see ", found,
         found == 1 ? " GPU" : " GPUs", ", and --device is auto; expected cpu or cuda, the same for all");
  if (found == 0) {
    say_no_gpu(command, "no GPU is visible");
  }
  return found > 0;
#else
  say_no_gpu(command, "this program was built without CUDA and NCCL");
  return false;
#endif
}
}  // namespace detail

/// The profile policy: NVTX on a GPU in a program that defines SUPEROFFLOAD_NVTX, else none.
template <class Device>
using profile_of = typename detail::profile_of<Device>::type;

/// Returns body(device, group) with the device that --device names: auto is a GPU where one can be used.
/// `group` is that of a rank, and null for one that trains alone.
/// \throws error(device, driver) for a GPU that was asked for and cannot be used.
template <class Body>
int with_device(command_line const& command, Body const& body) {
  if (command.run && command.device == device_choice::automatic && !detail::ranks_have_gpus(command)) {
    return detail::with_cpu_rank(command, body);
  }
#ifdef SUPEROFFLOAD_HAS_CUDA
#ifdef SUPEROFFLOAD_HAS_NCCL
  if (command.run && command.device != device_choice::cpu) {
    return detail::with_cuda_rank(command, body);
  }
#endif
  if (command.device != device_choice::cpu) {
    std::optional<cuda::device> device;
    try {
      device.emplace();
    } catch (error const& e) {
      bool const absent = e.code() == exit_code::device || e.code() == exit_code::driver;
      if (command.device != device_choice::automatic || !absent) {
        throw;
      }
      detail::say_no_gpu(command, e.what());
    }
    if (device) {
      return body(*device, static_cast<rank_group<cuda::device>*>(nullptr));
    }
  }
#else
  if (command.device == device_choice::automatic) {
    detail::say_no_gpu(command, "this program was built without CUDA");
  }
#endif
  if (command.run) {
    return detail::with_cpu_rank(command, body);
  }
  cpu::device device;
  return body(device, static_cast<rank_group<cpu::device>*>(nullptr));
}

}  // namespace superoffload::cli
