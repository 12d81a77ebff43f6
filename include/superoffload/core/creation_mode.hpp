// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace superoffload {

/// Permissions of new files and directories, from which the umask takes. Even under a umask of 0 other users
/// may not write: a checkpoint or a cache that they could change is one that they choose.
inline constexpr mode_t new_file_mode = 0664;
inline constexpr mode_t new_directory_mode = 0775;

}  // namespace superoffload
