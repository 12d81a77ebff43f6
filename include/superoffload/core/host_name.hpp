// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unistd.h>

namespace superoffload {

/// The name of this host, never empty: "host" where the system has none.
inline std::string host_name() {
  char name[256] = "host";
  ::gethostname(name, sizeof name - 1);
  return name[0] != '\0' ? name : "host";
}

}  // namespace superoffload
