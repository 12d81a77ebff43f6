// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <cerrno>
#include <cstring>

namespace superoffload {

/// Calls `call`, a system call that gives -1 and errno on failure, again until no signal interrupts it;
/// returns its result. Not for close(2), which frees the descriptor even when interrupted.
template <class Call>
auto uninterrupted(Call&& call) {
  while (true) {
    auto const result = call();
    if (result != -1 || errno != EINTR) {
      return result;
    }
  }
}

/// Throws `error{code, concat(parts...) + ": " + the reason in errno}` unless the system call is `done`.
/// Unlike an argument of expect(), errno is read after the call.
template <class... Parts>
void expect_call(bool done, exit_code code, Parts const&... parts) {
  if (!done) [[unlikely]] {
    fail(code, parts..., ": ", std::strerror(errno));
  }
}

}  // namespace superoffload
