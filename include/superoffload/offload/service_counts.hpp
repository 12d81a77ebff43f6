// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace superoffload::offload {

/// What a server has done with buckets so far.
struct service_counts {
  std::int64_t emitted = 0;     ///< weights sent before the verdict
  std::int64_t committed = 0;   ///< state written afterwards, alone or in one pass with the next step
  std::int64_t updated = 0;     ///< with the true factor
  std::int64_t sent_again = 0;  ///< emitted, but the verdict was another

  friend service_counts operator-(service_counts const& a, service_counts const& b) {
    return {a.emitted - b.emitted, a.committed - b.committed, a.updated - b.updated,
            a.sent_again - b.sent_again};
  }
};

}  // namespace superoffload::offload
