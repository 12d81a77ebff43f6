// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace superoffload::train {

/// Logs the time of work that took a second or more, and its rate if it moved bytes.
void log_time(std::string const& what, std::size_t bytes, double seconds);

/// While it lives, a live log shows what the run is doing and for how long, from the second second on. Of
/// several at once, each replaces the other's line. Any log gets a line with the time at the end of work that
/// took a second or more, and with the rate if it moved bytes.
class activity {
public:
  /// `is_shown`: false for all ranks but the first. `bytes`: what the work reads or writes; 0: no rate.
  activity(std::string what, bool is_shown, std::size_t bytes = 0);
  activity(activity const&) = delete;
  activity& operator=(activity const&) = delete;
  ~activity();

private:
  using clock = std::chrono::steady_clock;

  void show();

  std::string what_;
  bool is_shown_;
  std::size_t bytes_;
  clock::time_point began_ = clock::now();
  int exceptions_;  ///< in flight at the beginning
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;  ///< none: not shown
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/activity_inl.hpp>
#endif
