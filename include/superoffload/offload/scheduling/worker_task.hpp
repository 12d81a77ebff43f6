// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/machine.hpp>

#include <cstddef>

namespace superoffload::offload {

/// What CPU Adam does for a bucket.
enum class service {
  speculate,  ///< makes new weights and leaves the state
  commit,     ///< writes the state of a speculative update that came true
  update,     ///< makes both, with the true clip factor
  resend,     ///< makes the old weights
};

struct worker_task {
  service what;
  std::size_t bucket;
  bool commits = false;   ///< the step before it, too
  bool in_place = false;  ///< the weights are beside the state: nothing is sent

  [[nodiscard]] bool sends() const { return what != service::commit && !in_place; }
  /// What is not a resend.
  [[nodiscard]] adam_task adam() const {
    switch (what) {
      case service::commit:
        return adam_task::commit;
      case service::speculate:
        return commits ? adam_task::commit_speculate : adam_task::speculate;
      default:
        return commits ? adam_task::commit_update : in_place ? adam_task::update_in_place : adam_task::update;
    }
  }
  friend bool operator==(worker_task const&, worker_task const&) = default;
};

}  // namespace superoffload::offload
