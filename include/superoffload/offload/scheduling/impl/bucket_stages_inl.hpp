// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/scheduling/bucket_stages.hpp>

#include <cstddef>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE bucket_stages::bucket_stages(std::size_t buckets)
    : stages_(buckets, bucket_stage::idle), ranks_(buckets), of_rank_(buckets) {
  for (auto& w : waiting_) { w = {index_set{buckets}, index_set{buckets}}; }
}

SUPEROFFLOAD_INLINE void bucket_stages::queue(std::size_t bucket) {
  ranks_[bucket] = next_rank_;
  of_rank_[next_rank_++] = bucket;
  move(bucket, bucket_stage::queued);
}

SUPEROFFLOAD_INLINE void bucket_stages::move(std::size_t bucket, bucket_stage to, bool waits) {
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

}  // namespace superoffload::offload
