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
/// CPU Adam does, which state is uploaded, which pinned buffer each takes. A state machine of plain data: it
/// is told of events, and asked. offload::server tells it of what happens, the simulator of what would.
///
/// A step begins with the first gradient and ends with its check. Between the two, and if the step was
/// announced, buckets get a speculative update, newest first: their new weights are made and sent while their
/// state stays. If the check confirms them, their state is pending; it is committed in one pass with the next
/// step, or while there is nothing else to do. After the check what is left is updated, in the order of the
/// forward. In the immediate mode, whatever was announced is updated as its gradient comes.
///
/// Buckets are known by their place in the configuration, pinned buffers by their number.
class scheduler {
public:
  static constexpr int no_buffer = pinned_buffers::none;
  /// The pinned buffers that a task reads and writes: the gradient, that of the pending step, the weights.
  struct buffers {
    int gradient = no_buffer, kept = no_buffer, weights = no_buffer;
  };

  /// For the simulator.
  struct options {
    double hit_rate = 1.0;      ///< the estimate to begin with
    bool oldest_first = false;  ///< other systems' order
    /// In the immediate mode, what is uploaded after the check keeps the order of the backward. The server
    /// goes over to that of the forward, which is a little faster; plans count with this.
    bool late_uploads_backward = false;
  };

  explicit scheduler(configuration const& a) : scheduler{a, options{}} {}
  scheduler(configuration const& a, options const& o)
      : immediate_{a.immediate},
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

  // Events of a step
  // -------------------------------------------------------------------------------------------

  /// The coming step is known, should it not be clipped: buckets may be served before the check.
  void announce() { step_.announce(); }
  /// The backward of a unit is queued: its gradient comes.
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
  /// The backward is done.
  void gradient_final(int unit) {
    for (auto const i : of_unit(unit)) {
      if (stages_[i] == bucket_stage::queued) {
        stages_.move(i, bucket_stage::final, !buckets_[i].dropped);
      }
    }
  }
  /// The step was checked; nothing more of it is announced.
  void check(check_result result) {
    step_.end(result);
    for (std::size_t i = 0; i < buckets_.size(); ++i) { apply_check(i); }
    if (step_.skipped()) {
      staging_.skip();
    }
  }

  // Events of the link
  // -------------------------------------------------------------------------------------------

  /// The copy of the gradient that next_fetch() gave has begun. \returns the buffer it goes to.
  int fetch(std::size_t index) {
    buckets_[index].gradient = pinned_.take();
    ++fetching_;
    stages_.move(index, bucket_stage::fetching);
    return buckets_[index].gradient;
  }
  void fetched(std::size_t index) {
    auto& b = buckets_[index];
    --fetching_;
    if (!std::exchange(b.dropped, false)) {
      stages_.move(index,
                   b.in_place && before_check() && !immediate_ ? bucket_stage::held : bucket_stage::arrived);
      return;
    }
    pinned_.give(b.gradient);
    if (stages_[index] == bucket_stage::final) {  // again, in the step after that
      stages_.move(index, bucket_stage::final);
    }
  }
  /// Of the weights that were sent, those that were sent first are there.
  void weights_arrived() { pinned_.arrived(); }
  /// The upload of the state that next_upload() gave has begun.
  void upload(std::size_t index) { staging_.upload(index); }
  /// It is there, or will be before whatever is queued for it.
  void uploaded(std::size_t index) { staging_.uploaded(index); }
  /// The device has updated it, or will have before whatever is queued for it.
  void updated(std::size_t index) { staging_.updated(index); }
  void written_back(std::size_t index) { staging_.written_back(index); }
  /// All state is on the host: what was uploaded ahead is forgotten.
  void forget_uploads() { staging_.reset(); }

  // CPU Adam
  // -------------------------------------------------------------------------------------------

  /// The task that next_task() gave has begun; there is one at a time.
  buffers begin(worker_task const& t) {
    auto& b = buckets_[t.bucket];
    is_busy_ = true;
    pending_.erase(t.bucket);
    if (t.what == service::commit) {
      return {.kept = b.kept};
    }
    stages_.move(t.bucket, bucket_stage::serving);
    buffers uses{.gradient = b.gradient, .kept = t.commits ? b.kept : no_buffer, .weights = b.gradient};
    if (t.what == service::speculate) {
      uses.weights = t.commits ? b.kept : pinned_.take();
    }
    return uses;
  }
  /// It is done, and its weights are on their way, if it sends any.
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
      if (!before_check()) {  // it was checked meanwhile
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
    // A buffer stays free for the weights of the first speculative update.
    std::size_t const needed = step_.speculating() ? 2 : 1;
    return pinned_.free() >= needed ? next_of(bucket_stage::final) : std::nullopt;
  }
  /// What CPU Adam does next; nothing: it waits for a gradient, a buffer or the check.
  [[nodiscard]] std::optional<worker_task> next_task() const {
    if (before_check() && step_.announced() && immediate_) {
      if (auto const i = next_of(bucket_stage::arrived)) {
        return task(service::update, *i);
      }
    }
    if (step_.speculating()) {
      auto const i = next_of(bucket_stage::arrived);
      if (i && (pending_.contains(*i) || pinned_.free() > 0)) {  // weights go where the kept gradient was
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
    // A commit reads and writes memory that the link would read: it waits until nothing waits for that.
    bool const link_is_late = !before_check() && staging_.is_late();
    if (fetching_ == 0 && !link_is_late) {
      if (auto const i = next_commit()) {
        return worker_task{.what = service::commit, .bucket = *i, .commits = true};
      }
    }
    return std::nullopt;
  }
  /// The bucket whose state is to be uploaded; `ahead`: also of one that has no gradient yet.
  [[nodiscard]] std::optional<std::size_t> next_upload(bool ahead) const {
    return staging_.next_upload(ahead, !before_check() && !options_.late_uploads_backward);
  }
  /// The bucket that the device updates next, once it may.
  [[nodiscard]] std::optional<std::size_t> next_update() const { return staging_.next_update(); }
  /// Of the units whose backward is queued, the one that the device ends first and CPU Adam waits for.
  [[nodiscard]] std::optional<int> next_final() const {
    auto const oldest = stages_.oldest(bucket_stage::queued);
    return oldest ? std::optional{static_cast<int>(buckets_[*oldest].unit)} : std::nullopt;
  }

  // Status
  // ------------------------------------------------------------------------------------------------------

  /// Has a step begun that was not checked?
  [[nodiscard]] bool before_check() const { return step_.before(); }
  [[nodiscard]] bucket_stage stage(std::size_t index) const { return stages_[index]; }
  /// Are the bucket's weights those of the last step, or on their way?
  [[nodiscard]] bool weights_made(std::size_t index) const {
    auto const stage = stages_[index];
    return stage == bucket_stage::idle ? !staging_.has_gradient(index) : stage == bucket_stage::speculated;
  }
  [[nodiscard]] bool all_weights_made() const {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (!weights_made(i)) {
        return false;
      }
    }
    return true;
  }
  /// Does nobody need the bucket's gradient on the device any more, but for what is under way?
  [[nodiscard]] bool gradient_left(std::size_t index) const {
    auto const stage = stages_[index];
    return stage != bucket_stage::queued && stage != bucket_stage::final && !staging_.has_gradient(index);
  }
  /// Is there something to do for a bucket, and no buffer for it?
  [[nodiscard]] bool waits_for_buffer() const {
    return stages_.first(bucket_stage::final).has_value() || stages_.first(bucket_stage::arrived).has_value();
  }
  [[nodiscard]] staging_schedule const& staging() const { return staging_; }
  /// Is everything done, and nothing under way?
  [[nodiscard]] bool settled() const {
    return !is_busy_ && fetching_ == 0 && pinned_.all_arrived() && !pending_.first() && all_weights_made();
  }
  /// An estimate of how often a speculative update comes true: a moving average over steps.
  [[nodiscard]] double hit_rate() const { return step_.hit_rate(); }
  /// Of the buckets that CPU Adam serves.
  [[nodiscard]] worker_counts const& counts() const { return counts_; }

private:
  struct bucket_status {
    std::size_t unit;
    tier where;
    bool in_place;         // the weights are beside the state
    bool dropped = false;  // the gradient of a skipped step is still on its way
    int gradient = no_buffer;
    int kept = no_buffer;  // with the gradient of the pending step
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
        if (step_.came_true()) {
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

  /// Before the check the newest, after it the first of the forward.
  [[nodiscard]] std::optional<std::size_t> next_of(bucket_stage in) const {
    if (options_.oldest_first) {
      auto const last = stages_.last(in);
      return last ? stages_.first_from(of_unit_[buckets_[*last].unit].front(), in) : std::nullopt;
    }
    return before_check() ? stages_.newest(in) : stages_.first(in);
  }
  /// The first without a new gradient, since what the backward reaches sooner may yet be committed in one
  /// pass with its next step; where all have one, they wait for the buffers that only committing gives back.
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
    return {what, index, pending_.contains(index), buckets_[index].in_place};
  }

  bool immediate_;
  options options_;
  step_check step_;
  staging_schedule staging_;
  std::vector<bucket_status> buckets_;
  std::vector<std::vector<std::size_t>> of_unit_;
  pinned_buffers pinned_;

  bool is_busy_ = false;      // CPU Adam has a task
  std::size_t fetching_ = 0;  // gradients on their way
  bucket_stages stages_;
  index_set pending_;  // a step came true that is not in their state; its gradient is kept
  worker_counts counts_;
};

}  // namespace superoffload::offload
