// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace superoffload::train {

/// While it lives, a live log shows what the run is doing and for how long, from the second second on. Of
/// several at once, each replaces the other's line. Any other log shows nothing.
class activity {
public:
  /// `is_shown`: false for all ranks but the first.
  activity(std::string what, bool is_shown);
  activity(activity const&) = delete;
  activity& operator=(activity const&) = delete;
  ~activity();

private:
  void show(std::string const& what);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;  ///< none: not shown
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/activity_inl.hpp>
#endif
