// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/scheduling/adam_task.hpp>
#include <superoffload/offload/scheduling/pinned_buffers.hpp>

#include <cstddef>

namespace superoffload::offload {

/// What CPU Adam does for a bucket.
enum class service {
  speculate,  ///< makes new weights and leaves the state as it is
  commit,     ///< writes the state of a confirmed speculative update
  update,     ///< makes state and weights, with the true clip factor
  resend,     ///< makes the old weights again, after a speculative update for a skipped step
};

/// A task of CPU Adam, which all its threads do together.
struct worker_task {
  service what;              ///< its kind
  std::size_t bucket;        ///< index in the configuration
  bool commits = false;      ///< also commits the pending step, in the same pass
  bool in_place = false;     ///< the weights live on the host, beside the state: nothing is sent
  bool writes_next = false;  ///< a speculative update that also writes the state, beside the current one

  /// Are weights copied to the device afterwards?
  [[nodiscard]] bool sends() const { return what != service::commit && !in_place; }
  /// The kernel of a task that is no resend.
  [[nodiscard]] adam_task adam() const {
    switch (what) {
      case service::commit:
        return adam_task::commit;
      case service::speculate:
        return commits       ? adam_task::commit_speculate
               : writes_next ? adam_task::update  // as much work
                             : adam_task::speculate;
      default:
        return commits ? adam_task::commit_update : in_place ? adam_task::update_in_place : adam_task::update;
    }
  }
  friend bool operator==(worker_task const&, worker_task const&) = default;  ///< of all fields
};

/// The pinned buffers of a task, by number, and the copy of double-buffered state that is current.
struct task_buffers {
  /// @{
  /// The gradient, the kept gradient of the pending step, and the new weights, which may overwrite either.
  int gradient = pinned_buffers::none, kept = pinned_buffers::none, weights = pinned_buffers::none;
  /// @}
  int current = 0;  ///< 0 or 1
};

}  // namespace superoffload::offload
