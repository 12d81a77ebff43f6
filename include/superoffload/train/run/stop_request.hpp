// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace superoffload::train {

/// Turns SIGTERM, SIGINT and SIGHUP into a request to finish the step, save and leave. A second signal other
/// than SIGHUP ends the program at once, unless it is the first one again within `same_request`: timeout(1)
/// signals a process and its group, and both reach it. An ignored SIGHUP, as by nohup, stays ignored. Objects
/// of several ranks in one process see the same request; the destructor of the last one restores the former
/// handlers.
class stop_request {
public:
  /// Measured from the first signal, so that a person who presses Ctrl-C on and on is obeyed.
  static constexpr std::chrono::milliseconds same_request{500};

  stop_request();
  stop_request(stop_request const&) = delete;
  stop_request& operator=(stop_request const&) = delete;
  ~stop_request();

  /// The signal that was received; 0: none.
  [[nodiscard]] int signal() const noexcept;
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/stop_request_inl.hpp>
#endif
