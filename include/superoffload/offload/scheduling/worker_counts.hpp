// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace superoffload::offload {

/// What a server has done with buckets so far.
struct worker_counts {
  std::int64_t speculated = 0;  ///< weights sent before the check
  std::int64_t committed = 0;   ///< state written afterwards, alone or in one pass with the next step
  std::int64_t updated = 0;     ///< with the true factor
  std::int64_t resent = 0;      ///< emitted, but the check was another

  friend worker_counts operator-(worker_counts const& a, worker_counts const& b) {
    return {a.speculated - b.speculated, a.committed - b.committed, a.updated - b.updated,
            a.resent - b.resent};
  }
};

}  // namespace superoffload::offload
