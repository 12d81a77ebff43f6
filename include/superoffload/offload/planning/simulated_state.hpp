// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/lane_clock.hpp>
#include <superoffload/offload/planning/schedule.hpp>
#include <superoffload/offload/planning/simulated_passes.hpp>
#include <superoffload/offload/scheduling/scheduler.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// The optimizer state in simulated time: what offload::worker, resident state and the device do with
/// buckets. The scheduler makes the decisions, as it does for the worker.
class simulated_state {
public:
  /// All three must outlive it. \throws error(internal) for a bucket of a unit that is not there
  simulated_state(schedule const& s, lane_clock& clock, offloaded_gradients& gradients)
      : s_{s},
        clock_{clock},
        gradients_{gradients},
        scheduler_{configuration_of(s), {.hit_rate = s.hit_rate, .oldest_first = s.imitates.oldest_first}},
        of_unit_(s.units.size()),
        buckets_(s.state.buckets.size()),
        missing_(s.units.size()) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      auto const unit = static_cast<std::size_t>(plan(b).unit);
      expect(unit < s.units.size(), exit_code::internal, "bucket ", b, " is of unit ", unit,
             ", but there are ", s.units.size());
      of_unit_[unit].push_back(b);
    }
  }

  // Steps
  // ----------------------------------------------------------------------------------------------------

  /// The unit's gradient is final.
  void gradient_final(int unit) {
    auto const& buckets = of_unit_[static_cast<std::size_t>(unit)];
    if (gradients_.offloads(unit)) {
      gradients_.is_final(unit, buckets.size());
    }
    if (buckets.empty()) {
      return;
    }
    if (checked_) {  // the host queues the whole backward long before the device runs it
      checked_ = false;
      scheduler_.announce();
      for (std::size_t u = of_unit_.size(); u-- > 0;) { scheduler_.gradient_queued(static_cast<int>(u)); }
    }
    scheduler_.gradient_final(unit);
    for (auto const b : buckets) {
      weights_miss(b);
      if (plan(b).where == tier::host) {
        ++to_fetch_;
        continue;
      }
      buckets_[b].ready = true;
      missing_residents_ += plan(b).where == tier::resident ? 1 : 0;
      may_update(b);
    }
  }
  /// The step's gradient was checked.
  void check(bool unclipped) {
    checked_ = true;
    if (!unclipped) {
      for (std::size_t b = 0; b < buckets_.size(); ++b) {
        if (scheduler_.stage(b) == bucket_stage::speculated && buckets_[b].back) {
          weights_miss(b);
        }
      }
    }
    scheduler_.check(unclipped ? check_result::unclipped : check_result::clipped);
    for (std::size_t b = 0; b < buckets_.size(); ++b) { may_update(b); }
  }
  /// Has no gradient become final since the last check?
  [[nodiscard]] bool is_checked() const { return checked_; }
  /// Have all final gradients of the host tier arrived on the host?
  [[nodiscard]] bool gradients_arrived() const { return to_fetch_ == 0; }

  // What forward and backward wait for
  // ---------------------------------------------------------------------------------

  /// Are the unit's weights up to date? Are all weights?
  /// @{
  [[nodiscard]] bool is_back(int unit) const { return missing_[static_cast<std::size_t>(unit)] == 0; }
  [[nodiscard]] bool all_back() const { return all_missing_ == 0; }
  /// @}
  /// Is all resident state updated?
  [[nodiscard]] bool residents_back() const { return missing_residents_ == 0; }
  /// Has CPU Adam made all new weights of the unit?
  [[nodiscard]] bool is_served(int unit) const {
    for (auto const b : of_unit_[static_cast<std::size_t>(unit)]) {
      if (is_unserved(b)) {
        return false;
      }
    }
    return true;
  }
  /// Does an update wait for lane::device_adam?
  [[nodiscard]] bool device_has_updates() const { return !device_queue_.empty(); }
  /// Of the buckets that CPU Adam updates, since the beginning.
  [[nodiscard]] worker_counts const& counts() const { return scheduler_.counts(); }

  // Starts
  // -----------------------------------------------------------------------------------------------------

  /// @{
  /// Begins the next work of its kind, if some may begin. The lane must be idle, but for device_adam and cpu,
  /// which are asked here. \returns whether it began
  bool start_device_update() {
    if (clock_.is_busy(lane::device_adam) || device_queue_.empty()) {
      return false;
    }
    auto const b = device_queue_.front();
    device_queue_.pop_front();
    start(lane::device_adam, activity::device_update, b, update_bytes(b));
    return true;
  }
  bool start_gradient() {
    auto const b = scheduler_.next_fetch();
    if (!b) {
      return false;
    }
    scheduler_.fetch(*b);
    start_copy(lane::down, activity::gradient, *b, wire_bytes(*b));
    return true;
  }
  bool start_state_down() {
    if (to_go_home_.empty()) {
      return false;
    }
    auto const b = to_go_home_.front();
    to_go_home_.pop_front();
    start_copy(lane::down, activity::state_down, b, state_bytes(b));
    return true;
  }
  bool start_weights() {
    if (to_go_up_.empty() || (s_.imitates.returns_last && (!checked_ || any_unserved()))) {
      return false;
    }
    auto const b = to_go_up_.front();
    to_go_up_.pop_front();
    start_copy(lane::up, activity::weights, b, wire_bytes(b));
    return true;
  }
  bool start_state_up() {
    // In the immediate mode, uploads for the next step begin when this step's uploads have ended.
    auto const b = scheduler_.next_upload(!checked_ || !s_.state.immediate);
    if (!b) {
      return false;
    }
    scheduler_.upload(*b);
    start_copy(lane::up, activity::state_up, *b, state_bytes(*b));
    return true;
  }
  bool start_cpu() {
    if (clock_.is_busy(lane::cpu)) {
      return false;
    }
    auto const t = scheduler_.next_task();
    if (!t) {
      return false;
    }
    task_ = *t;
    used_ = scheduler_.begin(*t);
    auto const& b = plan(t->bucket);
    clock_.start_adam(t->adam(), b.unit, static_cast<int>(t->bucket), b.count);
    return true;
  }
  /// @}

  // Ends
  // -------------------------------------------------------------------------------------------------------

  /// @{
  /// The work on bucket `b`, an index in the configuration, has ended; cpu_ended(): the task of CPU Adam.
  void device_updated(std::size_t b) {
    gradient_left(b);
    if (plan(b).where == tier::device_updated) {
      scheduler_.updated(b);
      to_go_home_.push_back(b);
      if (in_place(b)) {
        return;  // its weights come back to the host with its state
      }
    } else {
      --missing_residents_;
    }
    weights_are_back(b);
  }
  void fetched(std::size_t b) {
    --to_fetch_;
    gradient_left(b);
    scheduler_.fetched(b);
  }
  void state_went_down(std::size_t b) {
    scheduler_.written_back(b);
    if (in_place(b)) {
      weights_are_back(b);
    }
  }
  void weights_went_up(std::size_t b) {
    scheduler_.weights_arrived();
    // After a wrong speculative update, a second copy of the weights follows.
    if (--buckets_[b].copies == 0 && !is_unserved(b)) {
      weights_are_back(b);
    }
  }
  void state_went_up(std::size_t b) {
    scheduler_.uploaded(b);
    may_update(b);
  }
  void cpu_ended() {
    auto const b = task_.bucket;
    scheduler_.finish(task_, used_);
    if (task_.sends()) {
      ++buckets_[b].copies;
      to_go_up_.push_back(b);
    } else if (task_.what == service::update) {
      weights_are_back(b);
    }
  }
  /// @}

private:
  struct bucket_state {
    bool back = true;    // its weights are up to date
    int copies = 0;      // of weights, queued or running
    bool ready = false;  // its gradient is on the device and waits for the device's update
  };

  static configuration configuration_of(schedule const& s) {
    auto a = s.state;
    a.offloaded.weights.resize(s.units.size());
    for (std::size_t u = 0; u < s.units.size(); ++u) {
      a.offloaded.weights[u] = s.offloads_weights(static_cast<int>(u));
    }
    return a;
  }
  [[nodiscard]] bucket const& plan(std::size_t b) const { return s_.state.buckets[b]; }
  [[nodiscard]] bool in_place(std::size_t b) const { return s_.offloads_weights(plan(b).unit); }

  // Bytes
  // ----------------------------------------------------------------------------------------------------

  [[nodiscard]] double wire_bytes(std::size_t b) const {
    double const each = s_.imitates.wire_bytes > 0.0 ? s_.imitates.wire_bytes : s_.element_bytes;
    return each * elements(b);
  }
  /// Of a device-updated bucket, one way.
  [[nodiscard]] double state_bytes(std::size_t b) const {
    return static_cast<double>(layout().device_updated(plan(b).count, in_place(b)));
  }
  [[nodiscard]] double update_bytes(std::size_t b) const {
    return static_cast<double>(layout().update_traffic(plan(b).count));
  }
  [[nodiscard]] state_layout layout() const {
    return {s_.state.format, static_cast<std::size_t>(s_.element_bytes)};
  }
  [[nodiscard]] double elements(std::size_t b) const { return static_cast<double>(plan(b).count); }

  void start(lane l, activity what, std::size_t b, double amount) {
    clock_.start(l, what, plan(b).unit, static_cast<int>(b), amount);
  }
  void start_copy(lane l, activity what, std::size_t b, double bytes) {
    clock_.start_copy(l, what, plan(b).unit, static_cast<int>(b), bytes);
  }

  [[nodiscard]] bool is_unserved(std::size_t b) const {
    return plan(b).where == tier::host && !scheduler_.weights_made(b);
  }
  [[nodiscard]] bool any_unserved() const {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (is_unserved(b)) {
        return true;
      }
    }
    return false;
  }
  void weights_miss(std::size_t b) {
    buckets_[b].back = false;
    ++missing_[static_cast<std::size_t>(plan(b).unit)];
    ++all_missing_;
  }
  void weights_are_back(std::size_t b) {
    buckets_[b].back = true;
    --missing_[static_cast<std::size_t>(plan(b).unit)];
    --all_missing_;
  }
  void gradient_left(std::size_t b) {
    if (gradients_.offloads(plan(b).unit)) {
      gradients_.bucket_left(plan(b).unit);
    }
  }
  void may_update(std::size_t b) {
    auto& of = buckets_[b];
    bool const there = plan(b).where == tier::resident || scheduler_.staging().is_staged(b);
    if (of.ready && there && (checked_ || s_.state.immediate)) {
      of.ready = false;
      device_queue_.push_back(b);
    }
  }

  schedule const& s_;
  lane_clock& clock_;
  offloaded_gradients& gradients_;
  scheduler scheduler_;
  std::vector<std::vector<std::size_t>> of_unit_;
  std::vector<bucket_state> buckets_;
  std::vector<int> missing_;  // buckets of a unit whose weights are not back
  int all_missing_ = 0;
  int missing_residents_ = 0;
  std::size_t to_fetch_ = 0;  // gradients that have not arrived on the host
  bool checked_ = true;       // nothing has become ready since the last check
  std::deque<std::size_t> to_go_up_, to_go_home_, device_queue_;
  worker_task task_{};  // of CPU Adam
  scheduler::buffers used_;
};

}  // namespace superoffload::offload
