// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/scheduling/bucket_stages.hpp>
#include <superoffload/offload/scheduling/index_set.hpp>
#include <superoffload/offload/scheduling/pinned_buffers.hpp>
#include <superoffload/offload/scheduling/staging_schedule.hpp>
#include <superoffload/offload/scheduling/step_check.hpp>
#include <superoffload/offload/scheduling/worker_counts.hpp>
#include <superoffload/offload/scheduling/worker_task.hpp>

#include <cstddef>
#include <optional>
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
  scheduler(configuration const& a, options const& o);
  /// @}

  // Events of a step
  // -------------------------------------------------------------------------------------------

  /// The coming step is known, if it is not clipped: buckets may be updated before the check.
  void announce() { step_.announce(); }
  /// The backward of a unit is queued.
  void gradient_queued(int unit);
  /// The backward of a unit has ended.
  void gradient_final(int unit);
  /// The step was checked.
  void check(check_result result);

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
  void fetched(std::size_t index);
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
  buffers begin(worker_task const& t);
  /// The task is done. The copy of its weights is queued, if it sends any.
  void finish(worker_task const& t, buffers const& used);

  // Decisions
  // --------------------------------------------------------------------------------------------------

  /// The bucket whose gradient is to be fetched.
  [[nodiscard]] std::optional<std::size_t> next_fetch() const;
  /// The next task of CPU Adam; none: it waits for a gradient, a buffer or the check.
  [[nodiscard]] std::optional<worker_task> next_task() const;
  /// The bucket whose state is to be uploaded; `ahead`: also a bucket without a gradient.
  [[nodiscard]] std::optional<std::size_t> next_upload(bool ahead) const {
    return staging_.next_upload(ahead, !before_check());
  }
  /// The bucket that the device updates next, when updates are allowed.
  [[nodiscard]] std::optional<std::size_t> next_update() const { return staging_.next_update(); }
  /// The unit whose queued backward ends first and that has buckets on the host.
  [[nodiscard]] std::optional<int> next_final() const;

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
  [[nodiscard]] bool all_weights_made() const;
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
  std::vector<std::size_t> const& of_unit(int unit) const;

  void apply_check(std::size_t index);

  /// Before the check the newest, after it the first in the order of the forward.
  [[nodiscard]] std::optional<std::size_t> next_of(bucket_stage in) const;
  /// The first pending bucket without a new gradient: those with one may be committed in one pass with their
  /// next step. If all have one, the first: they wait for buffers that only a commit frees.
  [[nodiscard]] std::optional<std::size_t> next_commit() const;
  [[nodiscard]] worker_task task(service what, std::size_t index) const;

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

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/scheduling/impl/scheduler_inl.hpp>
#endif
