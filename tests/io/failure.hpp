// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace superoffload::io::testing {

/// The error that `action` throws; its code is ok when it throws none. Other exceptions pass through.
template <class Action>
error failure_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (error const& failure) { return failure; }
  return {exit_code::ok, "no error"};
}

/// Checks the code, and that the message is one line that contains all of `parts`.
template <class... Parts>
void check_failure(error const& failure, exit_code code, Parts const&... parts) {
  std::string const message = failure.what();
  CAPTURE(message);
  CHECK(static_cast<int>(failure.code()) == static_cast<int>(code));
  CHECK(message.find('\n') == std::string::npos);
  for (std::string_view const part : std::initializer_list<std::string_view>{parts...}) {
    CHECK_MESSAGE(message.find(part) != message.npos, "expected in the message: ", part);
  }
}

}  // namespace superoffload::io::testing
