// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/cpu/device.hpp>
#ifdef EXAMPLES_CUDA  // the program is built with the component cuda
#include <superoffload/cuda/device.hpp>
#endif

#include "common/command_line.hpp"

#include <cstdio>
#include <optional>

namespace examples {

/// Why --device auto is the CPU.
inline void say_no_gpu(char const* reason) { std::printf("--device auto is the cpu: %s\n", reason); }

/// Returns body(device) with the device that --device names: auto is a GPU where one can be used.
/// \throws superoffload::error(device, driver) for a GPU that was asked for and cannot be used.
template <class Body>
int with_device(command_line const& command, Body&& body) {
  namespace so = superoffload;
#ifdef EXAMPLES_CUDA
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
      return body(*device);
    }
  }
#else
  constexpr char const* reason = "this program was built without CUDA";
  so::expect(command.device != device_choice::cuda, so::exit_code::device, "--device cuda: ", reason,
             "; expected a build where CMake finds a CUDA toolkit, or --device cpu");
  if (command.device == device_choice::automatic) {
    say_no_gpu(reason);
  }
#endif
  so::cpu::device device;
  return body(device);
}

}  // namespace examples
