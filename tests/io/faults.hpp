// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/fault.hpp>

#include <cerrno>
#include <unistd.h>

namespace superoffload::io::testing {

/// What happens to the operations while an `injection` lives. Plain data, since the hook is a plain function.
struct fault_plan {
  long at = -1;              ///< the operation, counted from 0, that fails; -1: none, count only
  int with = 0;              ///< errno, or short_transfer
  bool persistent = false;   ///< all later ones fail as well
  bool exits = false;        ///< the process ends instead
  bool no_exchange = false;  ///< names cannot be exchanged; attempts are not counted then
};

class injection {
public:
  explicit injection(fault_plan plan) {
    plan_ = plan;
    seen_ = 0;
    fault.store(&hook);
  }
  injection(injection const&) = delete;
  injection& operator=(injection const&) = delete;
  ~injection() { fault.store(nullptr); }

  /// The operations counted so far.
  [[nodiscard]] static long seen() { return seen_; }

private:
  static int hook(operation what, std::filesystem::path const&) {
    if (plan_.no_exchange && what == operation::exchange) {
      return EINVAL;
    }
    long const number = seen_++;
    bool const strikes = plan_.at >= 0 && (number == plan_.at || (plan_.persistent && number > plan_.at));
    if (strikes && plan_.exits) {
      ::_exit(0);
    }
    return strikes ? plan_.with : 0;
  }

  inline static fault_plan plan_;
  inline static long seen_ = 0;
};

}  // namespace superoffload::io::testing
