// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <string_view>

namespace superoffload::cuda::detail {

/// Throws `error` unless `status`, a cudaError_t, is success. The message names the call, where it was made,
/// the thread's last range and CUDA's text. The code is device_lost when the device has failed for good, else
/// device.
void check(int status, std::string_view call, std::string_view where);

/// The same for a call of another library, which has failed with `reason`.
[[noreturn]] void fail_call(std::string_view call, std::string_view where, std::string_view reason);

/// Has an earlier check seen the device fail for good? From then on destructors do not touch it: its memory
/// is freed with the process, and calls to a driver without its device may never return.
[[nodiscard]] bool device_is_lost() noexcept;

/// Why no device can be used; code driver or device. `status` (a cudaError_t) and `count` come from
/// cudaGetDeviceCount, `driver_version` from cudaDriverGetVersion, 0 where there is no driver.
[[nodiscard]] error no_device(int status, int count, int driver_version);

/// Does this program have kernels for the current device's architecture? Defined in kernels.cuh.
[[nodiscard]] bool kernels_fit_current_device();

}  // namespace superoffload::cuda::detail
