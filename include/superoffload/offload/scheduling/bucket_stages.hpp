// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/scheduling/index_set.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace superoffload::offload {

/// How far a bucket whose state is on the host has come in a step.
enum class bucket_stage {
  idle,        ///< nothing is to be done, or all is
  queued,      ///< the backward that makes its gradient is queued
  final,       ///< the gradient is on the device
  arrived,     ///< in a pinned buffer
  refused,     ///< there, after a speculative update for a step that changes nothing: its old weights are due
  fetching,    ///< on its way to a pinned buffer
  held,        ///< there, not to be used before the check
  serving,     ///< CPU Adam makes the bucket's weights of it
  speculated,  ///< there, after a speculative update
};

/// The stage of every bucket, and which is next in a stage: of the forward, or of the backward, whose order
/// is that in which the buckets were queued.
class bucket_stages {
public:
  explicit bucket_stages(std::size_t buckets)
      : stages_(buckets, bucket_stage::idle), ranks_(buckets), of_rank_(buckets) {
    for (auto& w : waiting_) { w = {index_set{buckets}, index_set{buckets}}; }
  }

  [[nodiscard]] bucket_stage operator[](std::size_t bucket) const { return stages_[bucket]; }

  /// No bucket of the last step waits for anything.
  void begin_step() { next_rank_ = 0; }
  void queue(std::size_t bucket) {
    ranks_[bucket] = next_rank_;
    of_rank_[next_rank_++] = bucket;
    move(bucket, bucket_stage::queued);
  }
  /// `waits`: is it to be found there?
  void move(std::size_t bucket, bucket_stage to, bool waits = true) {
    if (auto const from = static_cast<std::size_t>(stages_[bucket]); from < waiting_.size()) {
      waiting_[from].in_forward.erase(bucket);
      waiting_[from].by_rank.erase(ranks_[bucket]);
    }
    stages_[bucket] = to;
    if (auto const there = static_cast<std::size_t>(to); waits && there < waiting_.size()) {
      waiting_[there].in_forward.insert(bucket);
      waiting_[there].by_rank.insert(ranks_[bucket]);
    }
  }

  /// In a stage up to `refused`: the first and the last of the forward, the first from one on, the one that
  /// was queued first, and the one that was queued last.
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
