// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace superoffload::offload {

/// What an offload worker has done so far, in buckets.
struct worker_counts {
  std::int64_t speculated = 0;  ///< new weights made before the check
  std::int64_t committed = 0;   ///< state written after the check, alone or in one pass with the next step
  std::int64_t updated = 0;     ///< state and weights, with the true clip factor
  std::int64_t resent = 0;      ///< speculative updates that the check did not confirm

  /// What was done from the time of `b` to that of `a`.
  friend worker_counts operator-(worker_counts const& a, worker_counts const& b) {
    return {a.speculated - b.speculated, a.committed - b.committed, a.updated - b.updated,
            a.resent - b.resent};
  }
};

}  // namespace superoffload::offload
