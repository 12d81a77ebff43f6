// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace superoffload::train {

/// Turns SIGTERM and SIGINT into a request to finish the step, save and leave. A second signal ends the
/// program at once, as if this did not exist. One object at a time; its destructor restores the former
/// handlers.
class stop_request {
public:
  stop_request();
  stop_request(stop_request const&) = delete;
  stop_request& operator=(stop_request const&) = delete;
  ~stop_request();

  /// The signal that asked, 0 for none.
  [[nodiscard]] int signal() const noexcept;
};

}  // namespace superoffload::train
