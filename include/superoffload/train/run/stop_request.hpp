// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace superoffload::train {

/// Turns SIGTERM, SIGINT and SIGHUP into a request to finish the step, save and leave. A second signal other
/// than SIGHUP ends the program at once. An ignored SIGHUP, as by nohup, stays ignored. Objects of several
/// ranks in one process see the same request; the destructor of the last one restores the former handlers.
class stop_request {
public:
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
