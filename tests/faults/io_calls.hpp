// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "faults/io_trace.hpp"

#include <cerrno>

namespace superoffload::test {

// Faults that are no errno.
inline constexpr int shortened = -1;  ///< half of the bytes are transferred
inline constexpr int killed_before = -9;
inline constexpr int killed_after = -10;

/// Whether Linux fails this call with this errno.
constexpr bool can_fail(io_call call, int with) {
  bool const transfers = call == io_call::read || call == io_call::write;
  bool const takes_space = call == io_call::write || call == io_call::preallocate ||
                           call == io_call::make_directory || call == io_call::rename;
  bool const names = call == io_call::open || call == io_call::make_directory || call == io_call::rename ||
                     call == io_call::exchange || call == io_call::remove || call == io_call::list;
  switch (with) {
    case shortened:
      return transfers;
    case EINTR:
      return transfers || call == io_call::open || call == io_call::sync || call == io_call::close ||
             call == io_call::preallocate;
    case ENOSPC:
    case EDQUOT:
      return takes_space;
    case EMFILE:
      return call == io_call::open || call == io_call::list;
    case EACCES:
    case EROFS:
      return names;
    default:
      return true;
  }
}

}  // namespace superoffload::test
