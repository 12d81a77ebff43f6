// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/lane_clock.hpp>
#include <superoffload/offload/planning/simulated_collectives.hpp>
#include <superoffload/offload/planning/simulated_passes.hpp>
#include <superoffload/offload/planning/simulated_state.hpp>
#include <superoffload/offload/planning/simulator.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace superoffload::offload {
namespace detail {

/// Sums over the steps so far.
struct totals {
  std::vector<double> waits;
  std::array<double, lanes> busy{};
  double waited_for_ranks = 0.0;
  double time = 0.0;
  worker_counts served;
};

/// Did steps a and b take the same time and do the same work?
SUPEROFFLOAD_INLINE bool alike(std::vector<totals> const& ends, std::size_t a, std::size_t b) {
  auto const time = [&](std::size_t i) { return ends[i].time - ends[i - 1].time; };
  auto const of_a = ends[a].served - ends[a - 1].served, of_b = ends[b].served - ends[b - 1].served;
  return std::abs(time(a) - time(b)) <= 1e-9 * time(a) && of_a.speculated == of_b.speculated &&
         of_a.committed == of_b.committed && of_a.updated == of_b.updated;
}

/// The mean of `steps` steps, without intervals.
SUPEROFFLOAD_INLINE timeline mean_step(totals const& before, totals const& after, int steps) {
  double const time = after.time - before.time;
  timeline t;
  t.step_time = time / steps;
  for (std::size_t u = 0; u < after.waits.size(); ++u) {
    t.waits.push_back((after.waits[u] - before.waits[u]) / steps);
  }
  t.waited_for_ranks = (after.waited_for_ranks - before.waited_for_ranks) / steps;
  for (std::size_t i = 0; i < t.busy.size(); ++i) { t.busy[i] = (after.busy[i] - before.busy[i]) / time; }
  auto const served = after.served - before.served;
  auto const in_a_step = [steps](std::int64_t n) { return static_cast<double>(n) / steps; };
  t.speculated = in_a_step(served.speculated);
  t.committed = in_a_step(served.committed);
  t.updated = in_a_step(served.updated);
  t.resent = in_a_step(served.resent);
  return t;
}

class simulation {
public:
  simulation(machine const& m, schedule const& s)
      : m_{m},
        s_{s},
        passes_{passes_of(s)},
        collectives_{s},
        clock_{m, s.state.workers},
        visits_{s, passes_},
        gradients_{s, passes_},
        activations_{s},
        state_{s, clock_, gradients_} {
    sum_.waits.resize(s.units.size());
  }

  timeline run() {
    bool const uniform = s_.hit_rate <= 0.0 || s_.hit_rate >= 1.0;
    double const rarer = std::min(s_.hit_rate, 1.0 - s_.hit_rate);
    // Steps that do not become periodic, or differ by the hit rate, are averaged.
    std::size_t const warm_up = uniform ? 16 : 4;
    std::size_t const measured =
        uniform ? 8 : static_cast<std::size_t>(std::clamp(std::ceil(1.0 / rarer), 2.0, 40.0));
    std::vector<totals> ends{sum_};
    while (true) {
      settle();
      advance();
      auto const steps = ends.size();
      if (steps_ < static_cast<int>(steps)) {
        continue;
      }
      ends.push_back(sums());
      if (uniform && steps >= 4 && alike(ends, steps, steps - 1) && alike(ends, steps, steps - 2)) {
        return result(ends[steps - 1], 1, ends[steps - 1].time);
      }
      if (steps == warm_up + measured) {
        return result(ends[warm_up], static_cast<int>(measured), ends[steps - 1].time);
      }
      clock_.forget();
    }
  }

private:
  // Time
  // -----------------------------------------------------------------------------------------------------

  /// Starts everything that can start now.
  void settle() {
    while (announce() || start_collective() || state_.start_device_update() || start_compute() ||
           start_down() || start_up() || state_.start_cpu()) {}
  }
  /// Advances to the next end of an activity, or to the check.
  void advance() {
    double const dt = clock_.next(check_due_);
    sum_.waited_for_ranks += waits_for_ranks() ? dt : 0.0;
    bool const checked = dt == check_due_ - clock_.now();
    auto const ended = clock_.advance(dt, check_due_);
    for (int i = 0; i < lanes; ++i) {
      if (ended[static_cast<std::size_t>(i)]) {
        finish(static_cast<lane>(i));
      }
    }
    if (checked) {
      check();
    }
  }
  void finish(lane l) {
    auto const& done = clock_.end(l);
    auto const bucket = static_cast<std::size_t>(done.bucket);
    switch (done.what) {
      case activity::forward:
      case activity::backward:
        return pass_ended();
      case activity::gather:
      case activity::reduce:
        collectives_.ended();
        return;
      case activity::device_update:
        return state_.device_updated(bucket);
      case activity::gradient:
        return gradient_came_down(bucket);
      case activity::sum_down:
        return gradients_.sum_went_down(done.unit);
      case activity::state_down:
        return state_.state_went_down(bucket);
      case activity::activations_down:
        return activations_.went_down();
      case activity::activations_up:
        return activations_.came_up();
      case activity::unit:
        return visits_.arrived();
      case activity::sum_up:
        return gradients_.sum_came_up();
      case activity::state_up:
        return state_.state_went_up(bucket);
      case activity::weights:
        return state_.weights_went_up(bucket);
      default:
        return state_.cpu_ended();
    }
  }

  // Forward and backward
  // -------------------------------------------------------------------------------------

  bool start_compute() {
    if (!may_start_compute() || !collectives_.enough_for(pass_)) {
      return false;
    }
    auto const& p = passes_[pass_];
    if (!p.forward && p.micro_batch == 0 && gradients_.offloads(p.unit) && !collectives_.any()) {
      gradients_.take_buffer();
    }
    activations_.pass_began(p);
    waited(p.unit);
    auto const& time = s_.units[static_cast<std::size_t>(p.unit)];
    clock_.start(lane::compute, p.forward ? activity::forward : activity::backward, p.unit, 0,
                 p.forward ? time.forward : time.backward);
    return true;
  }
  /// May the next pass begin, apart from collectives that it needs?
  [[nodiscard]] bool may_start_compute() const {
    if (clock_.is_busy(lane::compute) || clock_.is_busy(lane::device_adam) || state_.device_has_updates() ||
        pass_ == passes_.size()) {
      return false;
    }
    auto const& p = passes_[pass_];
    bool can = !s_.offloads_weights(p.unit) || visits_.next_is_there();
    if (p.forward && p.at_the_edge) {
      can = can && (s_.state.waits_for_all ? state_.all_back() : state_.is_back(p.unit));
    }
    if (!p.forward && gradients_.offloads(p.unit) && !collectives_.any()) {
      can = can && gradients_.may_begin(p);
    }
    can = can && !sum_waits_for_buffer() && activations_.may_begin(p);
    if (collectives_.any() && p.forward && p.at_the_edge && pass_ + 1 < passes_.size()) {
      can = can && state_.is_served(passes_[pass_ + 1].unit);
    }
    return can;
  }

  /// Counts the wait before a pass, without the time of device updates.
  void waited(int unit) {
    sum_.waits[static_cast<std::size_t>(unit)] +=
        clock_.now() - could_compute_ - (device_adam_time() - device_adam_by_then_);
  }
  void may_compute() {
    could_compute_ = clock_.now();
    device_adam_by_then_ = device_adam_time();
  }
  [[nodiscard]] double device_adam_time() const {
    return clock_.worked()[static_cast<std::size_t>(lane::device_adam)];
  }

  void pass_ended() {
    auto const& p = passes_[pass_];
    may_compute();
    visits_.pass_ended(pass_);
    activations_.pass_ended(p);
    if (!p.forward && !collectives_.any()) {
      if (gradients_.offloads(p.unit)) {
        gradients_.backward_ended(p);
      }
      if (p.at_the_edge) {
        state_.gradient_final(p.unit);
      }
    }
    if (++pass_ == passes_.size() && collectives_.all_announced()) {
      backward_ended();
    }
  }

  // Collectives between ranks
  // --------------------------------------------------------------------------------

  bool start_collective() {
    auto const* const next = clock_.is_busy(lane::collective) ? nullptr : collectives_.next(pass_);
    if (next == nullptr || sum_waits_for_buffer()) {
      return false;
    }
    bool const gathers = next->what == activity::gather;
    // In the forward, updates of the last step may still run.
    if (gathers && state_.is_checked() && !(state_.residents_back() && state_.is_back(next->unit))) {
      return false;
    }
    if (!gathers && gradients_.offloads(next->unit)) {
      gradients_.take_buffer();
    }
    clock_.start(lane::collective, next->what, next->unit, 0, seconds_of(m_, *next));
    return true;
  }
  [[nodiscard]] bool sum_waits_for_buffer() const {
    return collectives_.sum_waits_for_buffer(pass_, clock_.is_busy(lane::collective), gradients_);
  }
  /// Passes on the next gradient that is reduced.
  bool announce() {
    auto const unit = collectives_.take_announcement(pass_);
    if (!unit) {
      return false;
    }
    state_.gradient_final(*unit);
    if (collectives_.all_announced()) {
      waited(*unit);
      backward_ended();
    }
    return true;
  }
  /// Is the device idle for no other reason than a collective?
  [[nodiscard]] bool waits_for_ranks() const {
    if (!collectives_.any() || clock_.is_busy(lane::compute) || clock_.is_busy(lane::device_adam)) {
      return false;
    }
    return pass_ == passes_.size() ? !collectives_.all_announced() && !sum_waits_for_buffer()
                                   : !collectives_.enough_for(pass_) && may_start_compute();
  }

  // The check
  // ------------------------------------------------------------------------------------------------

  void backward_ended() {
    if (!s_.imitates.checks_on_host || state_.gradients_arrived()) {
      check_due_ = clock_.now() + m_.device.round_trip;
    }
  }
  void check() {
    check_due_ = lane_clock::never;
    bool const unclipped =
        std::floor((steps_ + 1) * s_.hit_rate + 1e-9) > std::floor(steps_ * s_.hit_rate + 1e-9);
    ++steps_;
    pass_ = 0;
    collectives_.step_ended();
    visits_.step_ended();
    gradients_.step_ended();
    may_compute();
    state_.check(unclipped);
  }

  // The link
  // -------------------------------------------------------------------------------------------------

  bool start_down() {
    return !clock_.is_busy(lane::down) && (start_activations_down() || state_.start_gradient() ||
                                           start_sum_down() || state_.start_state_down());
  }
  bool start_activations_down() {
    auto const unit = activations_.take_down();
    if (unit) {
      clock_.start_copy(lane::down, activity::activations_down, *unit, 0, activations_.bytes(*unit));
    }
    return unit.has_value();
  }
  bool start_activations_up() {
    auto const unit = activations_.take_up();
    if (unit) {
      clock_.start_copy(lane::up, activity::activations_up, *unit, 0, activations_.bytes(*unit));
    }
    return unit.has_value();
  }
  bool start_sum_down() {
    auto const unit = gradients_.take_sum_to_go();
    if (unit) {
      clock_.start_copy(lane::down, activity::sum_down, *unit, 0, gradients_.bytes_of_sum(*unit));
    }
    return unit.has_value();
  }
  void gradient_came_down(std::size_t bucket) {
    state_.fetched(bucket);
    if (s_.imitates.checks_on_host && pass_ == passes_.size() && state_.gradients_arrived()) {
      check_due_ = clock_.now() + m_.device.round_trip;
    }
  }

  bool start_up() {
    return !clock_.is_busy(lane::up) && (start_unit() || start_activations_up() || start_sum_up() ||
                                         state_.start_weights() || state_.start_state_up());
  }
  bool start_unit() {
    auto const v = visits_.next_to_send();
    if (!v || (v->after_update && !state_.is_back(v->unit))) {
      return false;
    }
    visits_.send();
    auto const elements = s_.offloaded_weights[static_cast<std::size_t>(v->unit)];
    double const bytes = static_cast<double>(elements) * s_.element_bytes;
    clock_.start_copy(lane::up, activity::unit, v->unit, 0, bytes);
    return true;
  }
  bool start_sum_up() {
    auto const unit = pass_ == passes_.size() ? std::nullopt : gradients_.take_sum_to_come(passes_[pass_]);
    if (unit) {
      clock_.start_copy(lane::up, activity::sum_up, *unit, 0, gradients_.bytes_of_sum(*unit));
    }
    return unit.has_value();
  }

  // Results
  // --------------------------------------------------------------------------------------------------

  [[nodiscard]] totals sums() const {
    auto all = sum_;
    all.time = clock_.now();
    all.busy = clock_.worked();
    all.served = state_.counts();
    return all;
  }
  timeline result(totals const& before, int steps, double shown_from) {
    auto t = mean_step(before, sums(), steps);
    t.intervals = clock_.intervals(shown_from);
    return t;
  }

  machine const& m_;
  schedule const& s_;
  std::vector<simulated_pass> const passes_;  // of a step
  simulated_collectives collectives_;
  lane_clock clock_;
  weight_visits visits_;
  offloaded_gradients gradients_;
  activation_copies activations_;
  simulated_state state_;

  double could_compute_ = 0.0, device_adam_by_then_ = 0.0;
  double check_due_ = lane_clock::never;
  int steps_ = 0;
  std::size_t pass_ = 0;  // the next or running one of the step
  totals sum_;
};

}  // namespace detail

SUPEROFFLOAD_INLINE timeline simulate(machine const& m, schedule const& s) {
  expect(!s.units.empty() && s.micro_batches > 0 && s.state.workers > 0, exit_code::internal,
         "a schedule is incomplete: expected units, micro-batches and threads");
  auto const& with_ranks = s.with_ranks.units;
  expect(with_ranks.empty() || (with_ranks.size() == s.units.size() && m.peers.known()), exit_code::internal,
         "a schedule of several ranks is incomplete: expected the collectives of every unit and a machine "
         "with their rates");
  return detail::simulation{m, s}.run();
}

}  // namespace superoffload::offload
