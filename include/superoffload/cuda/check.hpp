// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <string_view>

namespace superoffload::cuda::detail {

/// Throws `error` unless `status`, a cudaError_t, is success: which call, where, the thread's last range and
/// what CUDA says. Its code is device_lost when the device has failed for good, else device.
void check(int status, std::string_view call, std::string_view where);

/// The same for a call of another library that has failed with `reason`.
[[noreturn]] void fail_call(std::string_view call, std::string_view where, std::string_view reason);

/// Has the device failed for good, as seen by an earlier check? From then on destructors leave it alone: its
/// memory goes with the process, and calls to a driver without its device are not known to return.
[[nodiscard]] bool device_is_lost() noexcept;

/// Why no device can be used, from what cudaGetDeviceCount gave, a cudaError_t and a number, and from
/// cudaDriverGetVersion, 0 where there is no driver: code driver or device.
[[nodiscard]] error no_device(int status, int count, int driver_version);

/// Has this program kernels for the current device's architecture? Defined in kernels.cuh.
[[nodiscard]] bool kernels_fit_current_device();

}  // namespace superoffload::cuda::detail
