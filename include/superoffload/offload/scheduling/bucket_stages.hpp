// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/scheduling/index_set.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace superoffload::offload {

/// The progress in a step of a bucket whose state is on the host.
enum class bucket_stage {
  idle,        ///< nothing to do, or all done
  queued,      ///< the backward that makes its gradient is queued
  final,       ///< the gradient is on the device
  arrived,     ///< in a pinned buffer
  refused,     ///< in a pinned buffer, after a speculative update for a skipped step: its old weights must be
               ///< resent
  fetching,    ///< being copied to a pinned buffer
  held,        ///< in a pinned buffer, not to be used before the check
  serving,     ///< CPU Adam makes the bucket's new weights
  speculated,  ///< in a pinned buffer, after a speculative update
};

/// The stage of every bucket, and the next bucket of a stage: in the order of the forward, or in the order in
/// which the backward queued the buckets.
class bucket_stages {
public:
  /// All are idle.
  explicit bucket_stages(std::size_t buckets);

  /// Of `bucket`, an index in the configuration.
  [[nodiscard]] bucket_stage operator[](std::size_t bucket) const { return stages_[bucket]; }

  /// Call when no bucket of the last step waits for anything.
  void begin_step() { next_rank_ = 0; }
  /// The backward that makes the bucket's gradient is queued, after those of buckets that were queued before.
  void queue(std::size_t bucket);
  /// `waits`: do the searches below find the bucket in its new stage?
  void move(std::size_t bucket, bucket_stage to, bool waits = true);

  /// @{
  /// Searches of a stage up to `refused`: the first and the last in the order of the forward, the first from
  /// a given one on, the one queued first, and the one queued last.
  [[nodiscard]] std::optional<std::size_t> first(bucket_stage in) const { return at(in).in_forward.first(); }
  [[nodiscard]] std::optional<std::size_t> last(bucket_stage in) const { return at(in).in_forward.last(); }
  [[nodiscard]] std::optional<std::size_t> first_from(std::size_t bucket, bucket_stage in) const {
    return at(in).in_forward.first_from(bucket);
  }
  [[nodiscard]] std::optional<std::size_t> oldest(bucket_stage in) const {
    return of_rank(at(in).by_rank.first());
  }
  [[nodiscard]] std::optional<std::size_t> newest(bucket_stage in) const {
    return of_rank(at(in).by_rank.last());
  }
  /// @}

private:
  struct waiting {
    index_set in_forward{0}, by_rank{0};
  };

  [[nodiscard]] waiting const& at(bucket_stage in) const { return waiting_[static_cast<std::size_t>(in)]; }
  [[nodiscard]] std::optional<std::size_t> of_rank(std::optional<std::size_t> rank) const {
    return rank ? std::optional{of_rank_[*rank]} : std::nullopt;
  }

  std::vector<bucket_stage> stages_;
  std::vector<std::size_t> ranks_;    // in the order in which the step's gradients come
  std::vector<std::size_t> of_rank_;  // bucket
  std::size_t next_rank_ = 0;
  std::array<waiting, 5> waiting_;  // of the stages that are searched
};

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/scheduling/impl/bucket_stages_inl.hpp>
#endif
