// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/first_bytes.hpp>

#include <string>

namespace superoffload {

/// The kernel's name for this start of this machine: two processes that read the same one are of one machine,
/// also in containers with host names of their own. Empty where the kernel does not say.
inline std::string boot_id() {
  auto const text = first_bytes_of("/proc/sys/kernel/random/boot_id").value_or("");
  return text.substr(0, text.find('\n'));
}

}  // namespace superoffload
