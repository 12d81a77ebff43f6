// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/scheduling/scheduler.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE scheduler::scheduler(configuration const& a, options const& o)
    : immediate_{a.immediate},
      double_buffered_{a.double_buffered},
      options_{o},
      step_{a, o.hit_rate},
      staging_{a},
      pinned_{a.pinned_buffers},
      stages_{a.buckets.size()},
      pending_{a.buckets.size()} {
  for (auto const& b : a.buckets) {
    auto const unit = static_cast<std::size_t>(b.unit);
    of_unit_.resize(std::max(of_unit_.size(), unit + 1));
    of_unit_[unit].push_back(buckets_.size());
    buckets_.push_back({.unit = unit, .where = b.where, .in_place = a.weights_offloaded(b)});
  }
}

SUPEROFFLOAD_INLINE void scheduler::gradient_queued(int unit) {
  if (!before_check()) {
    expect(all_weights_made(), exit_code::internal,
           "a gradient became final before the last step's weights were awaited");
    step_.begin();
    stages_.begin_step();
  }
  for (auto const i : of_unit(unit)) {
    if (buckets_[i].where == tier::device_updated) {
      staging_.gradient_came(i);
    } else if (buckets_[i].where == tier::host) {
      expect(stages_[i] == bucket_stage::idle, exit_code::internal,
             "a gradient became final twice in a step");
      stages_.queue(i);
    }
  }
}

SUPEROFFLOAD_INLINE void scheduler::gradient_final(int unit) {
  for (auto const i : of_unit(unit)) {
    if (stages_[i] == bucket_stage::queued) {
      stages_.move(i, bucket_stage::final, !buckets_[i].dropped);
    }
  }
}

SUPEROFFLOAD_INLINE void scheduler::check(check_result result) {
  step_.end(result);
  for (std::size_t i = 0; i < buckets_.size(); ++i) { apply_check(i); }
  if (step_.skipped()) {
    staging_.skip();
  }
}

SUPEROFFLOAD_INLINE std::optional<std::size_t> scheduler::next_fetch() const {
  // One buffer stays free for the weights of a speculative update.
  std::size_t const needed = step_.speculating() ? 2 : 1;
  return pinned_.free() >= needed ? next_of(bucket_stage::final) : std::nullopt;
}

SUPEROFFLOAD_INLINE void scheduler::fetched(std::size_t index) {
  auto& b = buckets_[index];
  --fetching_;
  if (!std::exchange(b.dropped, false)) {
    stages_.move(index,
                 b.in_place && before_check() && !immediate_ ? bucket_stage::held : bucket_stage::arrived);
    return;
  }
  pinned_.give(b.gradient);
  if (stages_[index] == bucket_stage::final) {  // the next step's gradient is final already
    stages_.move(index, bucket_stage::final);
  }
}

SUPEROFFLOAD_INLINE std::optional<worker_task> scheduler::next_task() const {
  if (before_check() && step_.announced() && immediate_) {
    if (auto const i = next_of(bucket_stage::arrived)) {
      return task(service::update, *i);
    }
  }
  if (step_.speculating()) {
    auto const i = next_of(bucket_stage::arrived);
    if (i && (pending_.contains(*i) ||
              pinned_.free() > 0)) {  // a pending bucket's weights take the buffer of its kept gradient
      return task(service::speculate, *i);
    }
  }
  if (!before_check()) {
    if (auto const i = stages_.first(bucket_stage::refused)) {
      return task(service::resend, *i);
    }
    if (auto const i = next_of(bucket_stage::arrived)) {
      return task(service::update, *i);
    }
  }
  // A commit competes with the link for memory bandwidth: it waits while a copy is waited for.
  bool const link_is_late = !before_check() && staging_.is_late();
  if (fetching_ == 0 && !link_is_late) {
    if (auto const i = next_commit()) {
      return worker_task{.what = service::commit, .bucket = *i, .commits = true};
    }
  }
  return std::nullopt;
}

SUPEROFFLOAD_INLINE scheduler::buffers scheduler::begin(worker_task const& t) {
  auto& b = buckets_[t.bucket];
  is_busy_ = true;
  pending_.erase(t.bucket);
  if (t.what == service::commit) {
    return {.kept = b.kept};
  }
  stages_.move(t.bucket, bucket_stage::serving);
  buffers uses{b.gradient, t.commits ? b.kept : no_buffer, b.gradient, b.current};
  if (t.what == service::speculate) {
    uses.weights = t.commits ? b.kept : pinned_.take();
  }
  return uses;
}

SUPEROFFLOAD_INLINE void scheduler::finish(worker_task const& t, buffers const& used) {
  auto& b = buckets_[t.bucket];
  is_busy_ = false;
  if (t.commits) {
    ++counts_.committed;
    if (used.weights == used.kept) {
      b.kept = no_buffer;
    } else {
      pinned_.give(b.kept);
    }
  }
  if (t.what == service::commit) {
    return;
  }
  if (t.sends()) {
    pinned_.send(used.weights);
  }
  if (t.what == service::speculate) {
    ++counts_.speculated;
    stages_.move(t.bucket, bucket_stage::speculated);
    if (!before_check()) {  // the check came meanwhile
      apply_check(t.bucket);
    }
    return;
  }
  counts_.updated += t.what == service::update ? 1 : 0;
  if (t.in_place) {
    pinned_.give(b.gradient);
  }
  b.gradient = no_buffer;
  stages_.move(t.bucket, bucket_stage::idle);
}

SUPEROFFLOAD_INLINE std::optional<int> scheduler::next_final() const {
  auto const oldest = stages_.oldest(bucket_stage::queued);
  return oldest ? std::optional{static_cast<int>(buckets_[*oldest].unit)} : std::nullopt;
}

SUPEROFFLOAD_INLINE bool scheduler::all_weights_made() const {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (!weights_made(i)) {
      return false;
    }
  }
  return true;
}

SUPEROFFLOAD_INLINE std::vector<std::size_t> const& scheduler::of_unit(int unit) const {
  static std::vector<std::size_t> const none;
  auto const u = static_cast<std::size_t>(unit);
  return u < of_unit_.size() ? of_unit_[u] : none;
}

SUPEROFFLOAD_INLINE void scheduler::apply_check(std::size_t index) {
  auto& b = buckets_[index];
  bool const skipped = step_.skipped();
  switch (stages_[index]) {
    case bucket_stage::speculated:
      if (step_.came_true() && double_buffered_) {
        b.current = 1 - b.current;
        pinned_.give(b.gradient);
        stages_.move(index, bucket_stage::idle);
      } else if (step_.came_true()) {
        b.kept = std::exchange(b.gradient, no_buffer);
        pending_.insert(index);
        stages_.move(index, bucket_stage::idle);
      } else {
        ++counts_.resent;
        stages_.move(index, skipped ? bucket_stage::refused : bucket_stage::arrived);
      }
      break;
    case bucket_stage::held:
    case bucket_stage::arrived:
      if (skipped) {
        pinned_.give(b.gradient);
      }
      stages_.move(index, skipped ? bucket_stage::idle : bucket_stage::arrived);
      break;
    case bucket_stage::queued:
    case bucket_stage::final:
    case bucket_stage::fetching:
      if (skipped) {
        b.dropped = b.dropped || stages_[index] == bucket_stage::fetching;
        stages_.move(index, bucket_stage::idle);
      }
      break;
    case bucket_stage::idle:
    case bucket_stage::serving:
    case bucket_stage::refused:
      break;
  }
}

SUPEROFFLOAD_INLINE std::optional<std::size_t> scheduler::next_of(bucket_stage in) const {
  if (options_.oldest_first) {
    auto const last = stages_.last(in);
    return last ? stages_.first_from(of_unit_[buckets_[*last].unit].front(), in) : std::nullopt;
  }
  return before_check() ? stages_.newest(in) : stages_.first(in);
}

SUPEROFFLOAD_INLINE std::optional<std::size_t> scheduler::next_commit() const {
  auto const first = pending_.first();
  for (auto i = first; i; i = pending_.first_from(*i + 1)) {
    if (stages_[*i] == bucket_stage::idle) {
      return i;
    }
  }
  return first;
}

SUPEROFFLOAD_INLINE worker_task scheduler::task(service what, std::size_t index) const {
  return {what, index, pending_.contains(index), buckets_[index].in_place,
          what == service::speculate && double_buffered_};
}

}  // namespace superoffload::offload
