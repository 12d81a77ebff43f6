// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/configuration.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace superoffload::offload {

/// Decides which device-updated state is uploaded next and which is updated. Plain data; its owner reports
/// events. Buckets are identified by their index in the configuration.
///
/// State takes turns in the staging buffers: in the order of the forward, so that some is staged when the
/// step has been checked; in the immediate mode, in the order of the backward until then.
class staging_schedule {
public:
  /// All state is on the host, and no gradient is there.
  explicit staging_schedule(configuration const& a);

  // Events
  // -----------------------------------------------------------------------------------------------------

  /// The gradient is on the device, or will be before anything queued later for this bucket.
  void gradient_came(std::size_t index) {
    auto& b = buckets_[index];
    late_ += !b.has_gradient && !b.is_staged ? 1 : 0;
    b.has_gradient = true;
  }
  /// The upload of the bucket that next_upload() gave begins.
  void upload(std::size_t index);
  /// The state is in its staging buffer, or will be before anything queued later for this bucket.
  void uploaded(std::size_t index);
  /// The device has updated the bucket, or will have before anything queued later for it.
  void updated(std::size_t index);
  /// The updated state is on the host again; its staging buffer is free.
  void written_back(std::size_t index) {
    buckets_[index].is_home = true;
    ++free_buffers_;
  }
  /// The step changes nothing: its gradients are dropped.
  void skip() {
    for (auto& b : buckets_) { b.has_gradient = false; }
    late_ = 0;
  }
  /// All state is on the host.
  void reset();

  // Decisions
  // --------------------------------------------------------------------------------------------------

  /// The bucket whose state is to be uploaded; `ahead`: also a bucket without a gradient; `forward_first`:
  /// use the order of the forward in the immediate mode, too.
  [[nodiscard]] std::optional<std::size_t> next_upload(bool ahead, bool forward_first) const;
  /// The bucket to update, when updates are allowed: the first uploaded one that has its gradient.
  [[nodiscard]] std::optional<std::size_t> next_update() const;
  /// Is its state in a staging buffer, and not updated since?
  [[nodiscard]] bool is_staged(std::size_t index) const { return buckets_[index].is_staged; }
  /// Is its gradient there, and not used by an update?
  [[nodiscard]] bool has_gradient(std::size_t index) const { return buckets_[index].has_gradient; }
  /// Are all staging buffers, or all buckets, uploaded?
  [[nodiscard]] bool is_full() const { return staged_.size() == std::min(most_, order_.size()); }
  /// Does a gradient wait for its state?
  [[nodiscard]] bool is_late() const { return late_ > 0; }

private:
  struct status {
    bool has_gradient = false;  // and is not updated
    bool is_home = true;        // all of its state is on the host
    bool is_staged = false;     // in a staging buffer and not updated
  };

  bool immediate_;
  int free_buffers_;
  std::size_t most_;  // buffers
  int late_ = 0;      // buckets with a gradient whose state is not staged
  std::vector<status> buckets_;
  std::vector<std::size_t> order_;   // of the uploads of a step
  std::deque<std::size_t> waiting_;  // to be uploaded, in this order
  std::deque<std::size_t> staged_;   // in the order of their uploads
};

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/scheduling/impl/staging_schedule_inl.hpp>
#endif
