// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <csignal>
#include <unistd.h>

namespace superoffload::test {

/// The fault of a rank that is a process.
enum class fault { killed, exits, throws, stops, hangs };

inline void commit(fault what) {
  switch (what) {
    case fault::killed:
      raise(SIGKILL);
      break;
    case fault::exits:
      _exit(0);
    case fault::throws:
      fail(exit_code::io_failure, "the disk is gone");
    case fault::stops:
      raise(SIGSTOP);
      break;
    case fault::hangs:
      while (true) { usleep(100000); }
  }
}

}  // namespace superoffload::test
