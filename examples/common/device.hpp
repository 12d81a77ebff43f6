// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/numa.hpp>
#include <superoffload/cpu/device.hpp>
#ifdef EXAMPLES_CUDA  // the program is built with the component cuda
#include <superoffload/cuda/device.hpp>
#endif

#include <superoffload/comm/host_group.hpp>
#include <superoffload/comm/rendezvous.hpp>
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/train/planning/host_share.hpp>

#include "common/command_line.hpp"
#include "common/ranks.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace examples {

/// Why --device auto is the CPU.
inline void say_no_gpu(char const* reason) { std::printf("--device auto is the cpu: %s\n", reason); }

/// Returns body(device, group) with the device and the group of one rank of a run.
template <class Body>
int with_cpu_rank(command_line const& command, Body&& body) {
  namespace so = superoffload;
  auto shared = so::comm::rendezvous(*command.run);
  rank_group<cpu_device> group{shared, command.run->rank};
  so::comm::host_group const ranks{group};
  if (command.bind_cores) {
    so::train::bind_cores(ranks, -1);
  }
  int const threads = std::min(so::cpu::default_threads(), so::train::cores_of_rank(ranks));
  cpu_device device{threads};
  return body(device, &group);
}
#ifdef SUPEROFFLOAD_HAS_NCCL
template <class Body>
int with_cuda_rank(command_line const& command, Body&& body) {
  namespace so = superoffload;
  auto shared = so::comm::rendezvous(*command.run);
  cuda_device device{so::nccl::gpu_of(*command.run)};
  rank_group<cuda_device> group{shared, command.run->rank, device};
  if (command.bind_cores) {
    so::train::bind_cores(so::comm::host_group{group}, so::node_of_pci(device.pci_address()));
  }
  return body(device, &group);
}
#endif

/// Returns body(device, group) with the device that --device names: auto is a GPU where one can be used.
/// `group` is null for one who trains alone.
/// \throws superoffload::error(device, driver) for a GPU that was asked for and cannot be used.
template <class Body>
int with_device(command_line const& command, Body&& body) {
  namespace so = superoffload;
#ifdef EXAMPLES_CUDA
#ifdef SUPEROFFLOAD_HAS_NCCL
  if (command.run && command.device == device_choice::cuda) {
    return with_cuda_rank(command, body);
  }
#endif
  if (command.device != device_choice::cpu) {
    std::optional<so::cuda::device> device;
    try {
      device.emplace();
    } catch (so::error const& e) {
      bool const absent = e.code() == so::exit_code::device || e.code() == so::exit_code::driver;
      if (command.device != device_choice::automatic || !absent) {
        throw;
      }
      say_no_gpu(e.what());
    }
    if (device) {
      return body(*device, static_cast<rank_group<cuda_device>*>(nullptr));
    }
  }
#else
  if (command.device == device_choice::automatic) {
    say_no_gpu("this program was built without CUDA");
  }
#endif
  if (command.run) {
    return with_cpu_rank(command, body);
  }
  so::cpu::device device;
  return body(device, static_cast<rank_group<cpu_device>*>(nullptr));
}

}  // namespace examples
