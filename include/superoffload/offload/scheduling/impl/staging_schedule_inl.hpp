// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/scheduling/staging_schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE staging_schedule::staging_schedule(configuration const& a)
    : immediate_{a.immediate},
      free_buffers_{a.staging_buffers},
      most_{static_cast<std::size_t>(a.staging_buffers)},
      buckets_(a.buckets.size()) {
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    if (a.buckets[i].where == tier::device_updated) {
      order_.push_back(i);
    }
  }
  if (immediate_) {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t x, std::size_t y) { return a.buckets[x].unit > a.buckets[y].unit; });
  }
  waiting_.assign(order_.begin(), order_.end());
}

SUPEROFFLOAD_INLINE void staging_schedule::upload(std::size_t index) {
  auto& b = buckets_[index];
  b.is_home = false;
  --free_buffers_;
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), index));
  waiting_.push_back(index);  // for the next step
}

SUPEROFFLOAD_INLINE void staging_schedule::uploaded(std::size_t index) {
  auto& b = buckets_[index];
  b.is_staged = true;
  late_ -= b.has_gradient ? 1 : 0;
  staged_.push_back(index);
}

SUPEROFFLOAD_INLINE void staging_schedule::updated(std::size_t index) {
  auto& b = buckets_[index];
  b.has_gradient = b.is_staged = false;
  staged_.erase(std::find(staged_.begin(), staged_.end(), index));
}

SUPEROFFLOAD_INLINE void staging_schedule::reset() {
  for (auto& b : buckets_) {
    free_buffers_ += b.is_home ? 0 : 1;
    b.is_home = true;
    b.is_staged = false;
  }
  staged_.clear();
  waiting_.assign(order_.begin(), order_.end());
}

SUPEROFFLOAD_INLINE std::optional<std::size_t> staging_schedule::next_upload(bool ahead,
                                                                             bool forward_first) const {
  if (waiting_.empty() || free_buffers_ == 0) {
    return std::nullopt;
  }
  if (immediate_) {  // a later gradient may need this one's buffer: no upload waits for a later gradient
    std::optional<std::size_t> first;
    for (auto const i : waiting_) {
      if (buckets_[i].is_home && buckets_[i].has_gradient && (!first || (forward_first && i < *first))) {
        first = i;
      }
    }
    if (first) {
      return first;
    }
  }
  auto const& next = buckets_[waiting_.front()];
  bool const may = next.is_home && (ahead || next.has_gradient);
  return may ? std::optional{waiting_.front()} : std::nullopt;
}

SUPEROFFLOAD_INLINE std::optional<std::size_t> staging_schedule::next_update() const {
  auto const next = std::find_if(staged_.begin(), staged_.end(),
                                 [this](std::size_t i) { return buckets_[i].has_gradient; });
  return next == staged_.end() ? std::nullopt : std::optional{*next};
}

}  // namespace superoffload::offload
