// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/scheduling/bucket_stages.hpp>
#include <superoffload/offload/scheduling/index_set.hpp>
#include <superoffload/offload/scheduling/pinned_buffers.hpp>
#include <superoffload/offload/scheduling/staging_schedule.hpp>
#include <superoffload/offload/scheduling/step_check.hpp>
#include <superoffload/offload/scheduling/worker_counts.hpp>
#include <superoffload/offload/scheduling/worker_task.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Decides what is done next for the buckets whose state is off the device: which gradient is fetched, what
/// CPU Adam does, which state is uploaded, and which pinned buffer each of these takes. A state machine of
/// plain data: its owner reports events and asks for decisions. offload::worker reports real events, the
/// simulator simulated ones.
///
/// A step begins with the first gradient and ends with its check. Between the two, if the step was announced,
/// buckets get speculative updates, newest first: their new weights are made and sent, and their state stays.
/// If the check confirms them, their state is pending. It is committed in one pass with the next step, or in
/// idle time. Double-buffered state is never pending: a speculative update writes its other copy, which the
/// check makes the current one. After the check the other buckets are updated, in the order of the forward.
/// In the immediate mode, buckets of an announced step are updated as soon as their gradients arrive.
///
/// Buckets are identified by their index in the configuration, pinned buffers by their number.
class scheduler {
public:
  static constexpr int no_buffer = pinned_buffers::none;  ///< stands for a buffer that a task does not use
  using buffers = task_buffers;                           ///< of a task

  /// For the simulator.
  struct options {
    double hit_rate = 1.0;      ///< the initial estimate
    bool oldest_first = false;  ///< the order of other systems
  };

  /// @{
  /// Copies what it needs of the configuration, which check() has accepted. No step has begun.
  explicit scheduler(configuration const& a) : scheduler{a, options{}} {}
  scheduler(configuration const& a, options const& o)
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
  /// @}

  // Events of a step
  // -------------------------------------------------------------------------------------------

  /// The coming step is known, if it is not clipped: buckets may be updated before the check.
  void announce() { step_.announce(); }
  /// The backward of a unit is queued.
  void gradient_queued(int unit) {
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
  /// The backward of a unit has ended.
  void gradient_final(int unit) {
    for (auto const i : of_unit(unit)) {
      if (stages_[i] == bucket_stage::queued) {
        stages_.move(i, bucket_stage::final, !buckets_[i].dropped);
      }
    }
  }
  /// The step was checked.
  void check(check_result result) {
    step_.end(result);
    for (std::size_t i = 0; i < buckets_.size(); ++i) { apply_check(i); }
    if (step_.skipped()) {
      staging_.skip();
    }
  }

  // Events of the link
  // -------------------------------------------------------------------------------------------

  /// The copy of the gradient that next_fetch() gave begins. \returns its pinned buffer.
  int fetch(std::size_t index) {
    buckets_[index].gradient = pinned_.take();
    ++fetching_;
    stages_.move(index, bucket_stage::fetching);
    return buckets_[index].gradient;
  }
  /// The copy that fetch() began has ended.
  void fetched(std::size_t index) {
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
  /// The oldest copy of weights has ended.
  void weights_arrived() { pinned_.arrived(); }
  /// The upload of the state that next_upload() gave begins.
  void upload(std::size_t index) { staging_.upload(index); }
  /// The upload has ended, or will have before anything queued later for this bucket.
  void uploaded(std::size_t index) { staging_.uploaded(index); }
  /// The device has updated the bucket, or will have before anything queued later for it.
  void updated(std::size_t index) { staging_.updated(index); }
  /// The updated state is on the host again; its staging buffer is free.
  void written_back(std::size_t index) { staging_.written_back(index); }
  /// All state is on the host: uploads ahead of the next step are forgotten.
  void forget_uploads() { staging_.reset(); }

  // CPU Adam
  // -------------------------------------------------------------------------------------------

  /// The task that next_task() gave begins. There is one task at a time.
  buffers begin(worker_task const& t) {
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
  /// The task is done. The copy of its weights is queued, if it sends any.
  void finish(worker_task const& t, buffers const& used) {
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

  // Decisions
  // --------------------------------------------------------------------------------------------------

  /// The bucket whose gradient is to be fetched.
  [[nodiscard]] std::optional<std::size_t> next_fetch() const {
    // One buffer stays free for the weights of a speculative update.
    std::size_t const needed = step_.speculating() ? 2 : 1;
    return pinned_.free() >= needed ? next_of(bucket_stage::final) : std::nullopt;
  }
  /// The next task of CPU Adam; none: it waits for a gradient, a buffer or the check.
  [[nodiscard]] std::optional<worker_task> next_task() const {
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
  /// The bucket whose state is to be uploaded; `ahead`: also a bucket without a gradient.
  [[nodiscard]] std::optional<std::size_t> next_upload(bool ahead) const {
    return staging_.next_upload(ahead, !before_check());
  }
  /// The bucket that the device updates next, when updates are allowed.
  [[nodiscard]] std::optional<std::size_t> next_update() const { return staging_.next_update(); }
  /// The unit whose queued backward ends first and that has buckets on the host.
  [[nodiscard]] std::optional<int> next_final() const {
    auto const oldest = stages_.oldest(bucket_stage::queued);
    return oldest ? std::optional{static_cast<int>(buckets_[*oldest].unit)} : std::nullopt;
  }

  // Status
  // ------------------------------------------------------------------------------------------------------

  /// Has a step begun that is not checked?
  [[nodiscard]] bool before_check() const { return step_.before(); }
  /// For buckets of the host tier; the others stay idle.
  [[nodiscard]] bucket_stage stage(std::size_t index) const { return stages_[index]; }
  /// Which copy of a double-buffered state is current: 0 or 1.
  [[nodiscard]] int current(std::size_t index) const { return buckets_[index].current; }
  /// Are the bucket's weights of the last step made? Their copy may still run.
  [[nodiscard]] bool weights_made(std::size_t index) const {
    auto const stage = stages_[index];
    return stage == bucket_stage::idle ? !staging_.has_gradient(index) : stage == bucket_stage::speculated;
  }
  /// The same for all buckets: may the next step's gradients come?
  [[nodiscard]] bool all_weights_made() const {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (!weights_made(i)) {
        return false;
      }
    }
    return true;
  }
  /// Is the bucket's gradient on the device no longer needed, except by work that is already queued?
  [[nodiscard]] bool gradient_left(std::size_t index) const {
    auto const stage = stages_[index];
    return stage != bucket_stage::queued && stage != bucket_stage::final && !staging_.has_gradient(index);
  }
  /// Does a bucket wait for a pinned buffer?
  [[nodiscard]] bool waits_for_buffer() const {
    return stages_.first(bucket_stage::final).has_value() || stages_.first(bucket_stage::arrived).has_value();
  }
  /// The part that decides about device-updated state.
  [[nodiscard]] staging_schedule const& staging() const { return staging_; }
  /// Is all work done, and no copy under way?
  [[nodiscard]] bool settled() const {
    return !is_busy_ && fetching_ == 0 && pinned_.all_arrived() && !pending_.first() && all_weights_made();
  }
  /// An estimate of the share of speculative updates that the check confirms: a moving average over steps.
  [[nodiscard]] double hit_rate() const { return step_.hit_rate(); }
  /// Of the buckets that CPU Adam updates.
  [[nodiscard]] worker_counts const& counts() const { return counts_; }

private:
  struct bucket_status {
    std::size_t unit;
    tier where;
    bool in_place;         // the weights are beside the state
    bool dropped = false;  // the gradient of a skipped step is still being copied
    int gradient = no_buffer;
    int kept = no_buffer;  // holds the gradient of the pending step
    int current = 0;       // copy of a double-buffered state
  };
  std::vector<std::size_t> const& of_unit(int unit) const {
    static std::vector<std::size_t> const none;
    auto const u = static_cast<std::size_t>(unit);
    return u < of_unit_.size() ? of_unit_[u] : none;
  }

  void apply_check(std::size_t index) {
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

  /// Before the check the newest, after it the first in the order of the forward.
  [[nodiscard]] std::optional<std::size_t> next_of(bucket_stage in) const {
    if (options_.oldest_first) {
      auto const last = stages_.last(in);
      return last ? stages_.first_from(of_unit_[buckets_[*last].unit].front(), in) : std::nullopt;
    }
    return before_check() ? stages_.newest(in) : stages_.first(in);
  }
  /// The first pending bucket without a new gradient: those with one may be committed in one pass with their
  /// next step. If all have one, the first: they wait for buffers that only a commit frees.
  [[nodiscard]] std::optional<std::size_t> next_commit() const {
    auto const first = pending_.first();
    for (auto i = first; i; i = pending_.first_from(*i + 1)) {
      if (stages_[*i] == bucket_stage::idle) {
        return i;
      }
    }
    return first;
  }
  [[nodiscard]] worker_task task(service what, std::size_t index) const {
    return {what, index, pending_.contains(index), buckets_[index].in_place,
            what == service::speculate && double_buffered_};
  }

  bool immediate_;
  bool double_buffered_;
  options options_;
  step_check step_;
  staging_schedule staging_;
  std::vector<bucket_status> buckets_;
  std::vector<std::vector<std::size_t>> of_unit_;
  pinned_buffers pinned_;

  bool is_busy_ = false;      // CPU Adam has a task
  std::size_t fetching_ = 0;  // gradients that are being copied
  bucket_stages stages_;
  index_set pending_;  // buckets with a confirmed step that is not in their state; its gradient is kept
  worker_counts counts_;
};

}  // namespace superoffload::offload
