// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/offload/simulator.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <utility>

namespace superoffload::offload {
namespace {

activity activity_of(adam_task task) {
  if (task == adam_task::update_in_place) {
    return activity::update;
  }
  return static_cast<activity>(static_cast<int>(activity::update) + static_cast<int>(task));
}

/// What is summed up over steps.
struct totals {
  std::vector<double> waits;
  std::array<double, lanes> busy{};
  double waited_for_ranks = 0.0;
  double time = 0.0, emitted = 0.0, committed = 0.0, updated = 0.0, sent_again = 0.0;
};

/// Were steps a and b the same, as far as their sums tell?
bool alike(std::vector<totals> const& ends, std::size_t a, std::size_t b) {
  auto const of_step = [&](double totals::* sum, std::size_t i) { return ends[i].*sum - ends[i - 1].*sum; };
  auto const same = [&](double totals::* sum) { return of_step(sum, a) == of_step(sum, b); };
  double const longer = of_step(&totals::time, a), other = of_step(&totals::time, b);
  return std::abs(longer - other) <= 1e-9 * longer && same(&totals::emitted) && same(&totals::committed) &&
         same(&totals::updated);
}

class simulation {
public:
  simulation(machine const& m, schedule const& s)
      : m_{m}, s_{s}, exchanges_{order_of(s.with_ranks, s.state.rooms, s.micro_batches)} {
    auto const units = s.units.size();
    for (int k = 0; k < s.micro_batches; ++k) {
      bool const first = k == 0, last = k + 1 == s.micro_batches;
      for (std::size_t u = 0; u < units; ++u) { passes_.push_back({static_cast<int>(u), true, first, k}); }
      for (std::size_t u = units; u-- > 0;) {
        if (!first && flowing(static_cast<int>(u)) > 0) {
          sum_uses_.push_back(passes_.size());
        }
        passes_.push_back({static_cast<int>(u), false, last, k});
      }
    }
    free_rooms_ = s.gradient_rooms;
    in_room_.resize(units);
    sum_is_home_.resize(units);
    of_unit_.resize(units);
    missing_.resize(units);
    sum_.waits.resize(units);
    buckets_.resize(s.state.buckets.size());
    for (std::size_t b = 0; b < s.state.buckets.size(); ++b) {
      auto const unit = static_cast<std::size_t>(s.state.buckets[b].unit);
      expect(unit < units, exit_code::internal, "bucket ", b, " is of unit ", unit, ", but there are ",
             units);
      of_unit_[unit].push_back(static_cast<int>(b));
      if (s.state.buckets[b].where == place::streamed) {
        streamed_.push_back(static_cast<int>(b));
      }
    }
    if (s.state.immediate) {  // in the order in which gradients come
      std::stable_sort(streamed_.begin(), streamed_.end(),
                       [this](int a, int b) { return plan(a).unit > plan(b).unit; });
    }
    for (std::size_t p = 0; p < passes_.size(); ++p) {
      if (!streams_weights(passes_[p].unit)) {
        continue;
      }
      if (visits_.empty() || visits_.back().unit != passes_[p].unit) {
        visits_.push_back({passes_[p].unit, p, passes_[p].forward && passes_[p].at_the_edge});
      }
      visits_.back().last = p;
    }
    free_slots_ = s.state.slots;
    acceptance_ = s.acceptance;
  }

  timeline run() {
    bool const uniform = s_.acceptance <= 0.0 || s_.acceptance >= 1.0;
    double const rarer = std::min(s_.acceptance, 1.0 - s_.acceptance);
    // Steps that do not settle, or are not meant to, are averaged.
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
      sum_.time = now_;
      ends.push_back(sum_);
      if (uniform && steps >= 4 && alike(ends, steps, steps - 1) && alike(ends, steps, steps - 2)) {
        return result(ends[steps - 1], 1, ends[steps - 1].time);
      }
      if (steps == warm_up + measured) {
        return result(ends[warm_up], static_cast<int>(measured), ends[steps - 1].time);
      }
      done_.clear();
    }
  }

private:
  // What is known of a bucket and a lane
  // -------------------------------------------------------------------------------

  struct bucket_state {
    bool back = true;       // its weights are those of the last step
    bool unserved = false;  // host: CPU Adam has yet to make them
    int copies = 0;         // host: of weights, queued or running
    bool ready = false;     // streamed, resident: its gradient waits on the device
    bool pending = false;   // an accepted step is not in its state yet; its gradient keeps a slot
    bool staged = false;    // streamed: its state is on the device
    bool at_home = true;    // streamed: its state is on the host, whole
  };
  struct running {
    bool on = false;
    activity what{};
    int unit = 0;
    int bucket = 0;
    double left = 0.0;  // compute, exchange: s; cpu: parameters; others: bytes
    double begin = 0.0;
  };
  struct one_pass {
    int unit;
    bool forward;
    bool at_the_edge;  // forward: of the first micro-batch; backward: of the last
    int micro_batch;
  };
  /// Passes in a row that use a unit's streamed weights.
  struct visit {
    int unit;
    std::size_t last;
    bool after_update;
  };

  bool streams_weights(int unit) const {
    auto const u = static_cast<std::size_t>(unit);
    return u < s_.streamed_weights.size() && s_.streamed_weights[u] > 0;
  }
  std::int64_t flowing(int unit) const {
    auto const u = static_cast<std::size_t>(unit);
    return u < s_.flowing_gradients.size() ? s_.flowing_gradients[u] : 0;
  }
  running& on(lane l) { return running_[static_cast<std::size_t>(l)]; }
  bucket const& plan(int b) const { return s_.state.buckets[static_cast<std::size_t>(b)]; }
  bucket_state& state(int b) { return buckets_[static_cast<std::size_t>(b)]; }
  double wire_bytes(int b) const {
    double const each = s_.imitates.wire_bytes > 0.0 ? s_.imitates.wire_bytes : s_.element_bytes;
    return each * static_cast<double>(plan(b).count);
  }
  /// Of a streamed bucket one way: m, v, what of the master is not in the weight, and streamed weights.
  double state_bytes(int b) const {
    double const each =
        (s_.element_bytes == 2 ? 10.0 : 8.0) + (streams_weights(plan(b).unit) ? s_.element_bytes : 0);
    return each * static_cast<double>(plan(b).count);
  }
  /// Device memory that an update reads and writes: weight and state both ways, the gradient once.
  double update_bytes(int b) const {
    double const state = s_.element_bytes == 2 ? 10.0 : 8.0;
    return (2.0 * state + 3.0 * s_.element_bytes) * static_cast<double>(plan(b).count);
  }

  void start(lane l, activity what, int unit, int b, double amount) {
    on(l) = {true, what, unit, b, amount, now_};
  }
  void start_copy(lane l, activity what, int unit, int b, double bytes) {
    double const rate = l == lane::down ? m_.link.alone.down : m_.link.alone.up;
    start(l, what, unit, b, bytes + m_.link.latency * rate);
  }
  void start_copy(lane l, activity what, int b, double bytes) { start_copy(l, what, plan(b).unit, b, bytes); }
  void start_copy_of_sum(lane l, activity what, int unit) {
    start_copy(l, what, unit, 0, 4.0 * static_cast<double>(flowing(unit)));
  }

  // Time
  // -----------------------------------------------------------------------------------------------------

  double rate(lane l) const {
    auto const at = [this](lane which) -> running const& {
      return running_[static_cast<std::size_t>(which)];
    };
    bool const down = at(lane::down).on, up = at(lane::up).on;
    auto const beside = at(lane::cpu).on ? m_.link.beside_adam : link_rates{1.0, 1.0};
    switch (l) {
      case lane::compute:
        return at(lane::device_adam).on ? 0.0 : at(lane::exchange).on ? m_.peers.compute_beside : 1.0;
      case lane::device_adam:
        return m_.device.bandwidth;
      case lane::down:
        return beside.down * (up ? m_.link.both : m_.link.alone).down;
      case lane::up:
        return beside.up * (down ? m_.link.both : m_.link.alone).up;
      case lane::exchange:
        return at(lane::compute).on && !at(lane::device_adam).on ? m_.peers.beside_compute : 1.0;
      case lane::cpu:
        break;
    }
    return 1.0 / m_.adam_time(cpu_task_, s_.state.workers, static_cast<int>(down) + static_cast<int>(up));
  }

  /// To the next end of anything.
  void advance() {
    double dt = verdict_due_ - now_;
    for (int i = 0; i < lanes; ++i) {
      auto const& r = running_[static_cast<std::size_t>(i)];
      double const speed = r.on ? rate(static_cast<lane>(i)) : 0.0;
      if (speed > 0.0) {
        dt = std::min(dt, r.left / speed);
      }
    }
    expect(std::isfinite(dt), exit_code::cannot_fit,
           "the offloaded step stands still: there are too few slots, or there is no room for gradients "
           "before the verdict; keep more memory for them");
    std::array<double, lanes> speeds{};
    for (int i = 0; i < lanes; ++i) {
      auto const at = static_cast<std::size_t>(i);
      speeds[at] = running_[at].on ? rate(static_cast<lane>(i)) : 0.0;
    }
    sum_.waited_for_ranks += waits_for_ranks() ? dt : 0.0;
    std::array<bool, lanes> ended{};
    for (std::size_t at = 0; at < ended.size(); ++at) {
      if (speeds[at] > 0.0) {
        sum_.busy[at] += dt;
        ended[at] = running_[at].left <= speeds[at] * dt * (1.0 + 1e-12);
        running_[at].left -= speeds[at] * dt;
      }
    }
    bool const verdict = dt == verdict_due_ - now_;
    now_ = verdict ? verdict_due_ : now_ + dt;
    for (int i = 0; i < lanes; ++i) {
      if (ended[static_cast<std::size_t>(i)]) {
        finish(static_cast<lane>(i));
      }
    }
    if (verdict) {
      judge();
    }
  }

  void finish(lane l) {
    auto const r = on(l);
    on(l).on = false;
    if (now_ > r.begin) {
      done_.push_back({l, r.what, r.unit, r.begin, now_});
    }
    switch (l) {
      case lane::compute:
        pass_ended();
        break;
      case lane::device_adam:
        device_updated(r.bucket);
        break;
      case lane::down:
        came_down(r);
        break;
      case lane::up:
        went_up(r);
        break;
      case lane::cpu:
        served(r.bucket);
        break;
      case lane::exchange:
        ++exchanged_;
        break;
    }
  }

  /// Starts whatever can.
  void settle() {
    while (announce() || start_exchange() || start_device_update() || start_compute() || start_down() ||
           start_up() || start_cpu()) {}
  }

  // Forward and backward
  // -------------------------------------------------------------------------------------

  bool start_compute() {
    if (!may_start_compute() || exchanged_ < needed_exchanges()) {
      return false;
    }
    auto const& p = passes_[pass_];
    auto const unit = static_cast<std::size_t>(p.unit);
    if (!p.forward && p.micro_batch == 0 && flowing(p.unit) > 0 && !has_ranks()) {
      --free_rooms_;
    }
    waited(unit);
    start(lane::compute, p.forward ? activity::forward : activity::backward, p.unit, 0,
          p.forward ? s_.units[unit].forward : s_.units[unit].backward);
    return true;
  }
  /// Nothing but exchanges keeps the next pass from beginning.
  bool may_start_compute() {
    if (on(lane::compute).on || on(lane::device_adam).on || !device_queue_.empty() ||
        pass_ == passes_.size()) {
      return false;
    }
    auto const& p = passes_[pass_];
    auto const unit = static_cast<std::size_t>(p.unit);
    bool can = !streams_weights(p.unit) || units_there_ > visit_;
    if (p.forward && p.at_the_edge) {
      can = can && (s_.state.waits_for_all ? all_missing_ == 0 : missing_[unit] == 0);
    }
    if (!p.forward && flowing(p.unit) > 0 && !has_ranks()) {
      can = can && (p.micro_batch == 0 ? free_rooms_ > 0 : sums_there_ > sum_use_);
    }
    can = can && !sum_waits_for_room();
    if (has_ranks() && p.forward && p.at_the_edge && pass_ + 1 < passes_.size()) {
      can = can && is_served(static_cast<std::size_t>(passes_[pass_ + 1].unit));
    }
    return can;
  }

  /// What the device updated in the meantime was no waiting.
  void waited(std::size_t unit) {
    sum_.waits[unit] += now_ - could_compute_ - (device_adam_time() - device_adam_by_then_);
  }
  void may_compute() {
    could_compute_ = now_;
    device_adam_by_then_ = device_adam_time();
  }
  double device_adam_time() const { return sum_.busy[static_cast<std::size_t>(lane::device_adam)]; }

  void pass_ended() {
    auto const& p = passes_[pass_];
    may_compute();
    if (streams_weights(p.unit) && visits_[visit_].last == pass_) {
      ++visit_;
    }
    if (!p.forward && !has_ranks()) {
      bool const flows = flowing(p.unit) > 0;
      sum_use_ += flows && p.micro_batch > 0 ? 1U : 0U;
      if (p.at_the_edge) {
        unit_ready(p.unit);
      } else if (flows) {
        sum_is_home_[static_cast<std::size_t>(p.unit)] = false;
        sums_to_go_.push_back(p.unit);
      }
    }
    if (++pass_ == passes_.size() && announced_ == exchanges_.announcements.size()) {
      backward_ended();
    }
  }
  void unit_ready(int unit) {
    if (flowing(unit) > 0) {
      in_room_[static_cast<std::size_t>(unit)] = of_unit_[static_cast<std::size_t>(unit)].size();
      leaving_.push_back(unit);
    }
    for (int const b : of_unit_[static_cast<std::size_t>(unit)]) { gradient_ready(b); }
  }

  void gradient_ready(int b) {
    judged_ = false;
    ++missing_[static_cast<std::size_t>(plan(b).unit)];
    ++all_missing_;
    state(b).back = false;
    if (plan(b).where == place::host) {
      state(b).unserved = true;
      ++unserved_;
      to_come_down_.insert(b);
      return;
    }
    state(b).ready = true;
    missing_residents_ += plan(b).where == place::resident ? 1 : 0;
    late_ += plan(b).where == place::streamed ? 1 : 0;
    may_update(b);
  }

  // Exchanges between ranks
  // -------------------------------------------------------------------------------------------------

  [[nodiscard]] bool has_ranks() const { return !exchanges_.needed.empty(); }
  [[nodiscard]] std::size_t needed_exchanges() const {
    return has_ranks() && pass_ < passes_.size() ? exchanges_.needed[pass_] : 0;
  }

  bool start_exchange() {
    auto const next = exchanged_;
    if (on(lane::exchange).on || next == exchanges_.operations.size() ||
        pass_ < exchanges_.operations[next].after) {
      return false;
    }
    auto const& o = exchanges_.operations[next];
    bool const gathers = o.what == activity::gather;
    // In the forward the last step's updates may still run.
    if (gathers && judged_ && (missing_residents_ > 0 || missing_[static_cast<std::size_t>(o.unit)] > 0)) {
      return false;
    }
    if (sum_waits_for_room()) {
      return false;
    }
    free_rooms_ -= !gathers && flowing(o.unit) > 0 ? 1 : 0;
    start(lane::exchange, o.what, o.unit, 0, seconds_of(m_, o));
    return true;
  }
  /// Is the next exchange a sum that finds no room for its result? Whoever queues it waits, and with it
  /// everything behind.
  [[nodiscard]] bool sum_waits_for_room() const {
    auto const next = exchanged_ + (running_[static_cast<std::size_t>(lane::exchange)].on ? 1U : 0U);
    if (free_rooms_ > 0 || next >= exchanges_.operations.size()) {
      return false;
    }
    auto const& o = exchanges_.operations[next];
    return o.what == activity::reduce && flowing(o.unit) > 0 && pass_ >= o.after;
  }
  /// Tells of the next gradient that is reduced.
  bool announce() {
    if (announced_ == exchanges_.announcements.size()) {
      return false;
    }
    auto const& a = exchanges_.announcements[announced_];
    if (pass_ < a.after || exchanged_ < a.operations) {
      return false;
    }
    ++announced_;
    unit_ready(a.unit);
    if (announced_ == exchanges_.announcements.size()) {
      waited(static_cast<std::size_t>(a.unit));
      backward_ended();
    }
    return true;
  }
  /// Has CPU Adam made all weights of the unit?
  bool is_served(std::size_t unit) {
    auto const& of_unit = of_unit_[unit];
    return std::none_of(of_unit.begin(), of_unit.end(), [this](int b) { return state(b).unserved; });
  }
  /// Does the device stand still, and for nothing else?
  bool waits_for_ranks() {
    if (!has_ranks() || on(lane::compute).on || on(lane::device_adam).on) {
      return false;
    }
    return pass_ == passes_.size() ? announced_ < exchanges_.announcements.size() && !sum_waits_for_room()
                                   : exchanged_ < needed_exchanges() && may_start_compute();
  }

  /// The bucket of `waiting` to go on with.
  int next_of(std::set<int> const& waiting) const {
    if (s_.imitates.oldest_first) {
      return *std::find_if(waiting.begin(), waiting.end(),
                           [&](int b) { return plan(b).unit == plan(*waiting.rbegin()).unit; });
    }
    if (judged_) {
      return *waiting.begin();
    }
    // The newest: the last one of the unit whose backward ended last.
    auto const& of_unit = of_unit_[static_cast<std::size_t>(plan(*waiting.begin()).unit)];
    return *std::prev(waiting.upper_bound(of_unit.back()));
  }

  void weights_are_back(int b) {
    state(b).back = true;
    --missing_[static_cast<std::size_t>(plan(b).unit)];
    --all_missing_;
  }

  // The verdict
  // ----------------------------------------------------------------------------------------------

  void backward_ended() {
    if (!s_.imitates.judges_on_host || gradients_on_the_way() == 0) {
      verdict_due_ = now_ + m_.device.round_trip;
    }
  }
  bool fetching() { return on(lane::down).on && on(lane::down).what == activity::gradient; }
  std::size_t gradients_on_the_way() { return to_come_down_.size() + (fetching() ? 1U : 0U); }

  void judge() {
    verdict_due_ = never;
    bool const accepted =
        std::floor((steps_ + 1) * s_.acceptance + 1e-9) > std::floor(steps_ * s_.acceptance + 1e-9);
    ++steps_;
    judged_ = true;
    pass_ = 0;
    exchanged_ = announced_ = 0;
    visit_ = units_sent_ = units_there_ = 0;
    sum_use_ = sums_sent_ = sums_there_ = 0;
    may_compute();
    for (int const b : emitted_) {
      if (accepted) {
        state(b).pending = true;
        to_commit_.insert(b);
      } else {
        take_back(b);
      }
    }
    emitted_.clear();
    to_serve_.merge(held_);
    in_vain_ = !accepted && on(lane::cpu).on && emits(cpu_task_);
    acceptance_ = 0.9 * acceptance_ + (accepted ? 0.1 : 0.0);
    for (std::size_t b = 0; b < buckets_.size(); ++b) { may_update(static_cast<int>(b)); }
  }

  /// What was emitted for a step that is clipped: its gradient, still in its slot, is to be served.
  void take_back(int b) {
    ++sum_.sent_again;
    state(b).unserved = true;
    ++unserved_;
    to_serve_.insert(b);
    if (state(b).back) {
      state(b).back = false;
      ++missing_[static_cast<std::size_t>(plan(b).unit)];
      ++all_missing_;
    }
  }

  // The device's updates
  // ------------------------------------------------------------------------------------

  void may_update(int b) {
    auto& of = state(b);
    if (of.ready && (judged_ || s_.state.immediate) && (of.staged || plan(b).where == place::resident)) {
      of.ready = false;
      late_ -= plan(b).where == place::streamed ? 1 : 0;
      device_queue_.push_back(b);
    }
  }
  bool start_device_update() {
    if (on(lane::device_adam).on || device_queue_.empty()) {
      return false;
    }
    int const b = device_queue_.front();
    device_queue_.pop_front();
    start(lane::device_adam, activity::device_update, plan(b).unit, b, update_bytes(b));
    return true;
  }
  void device_updated(int b) {
    gradient_left(b);
    if (plan(b).where == place::streamed) {
      state(b).staged = false;
      to_go_home_.push_back(b);
      if (streams_weights(plan(b).unit)) {
        return;  // its weights are on the host when its state is
      }
    } else {
      --missing_residents_;
    }
    weights_are_back(b);
  }

  /// The device does not need the bucket's gradient any more.
  void gradient_left(int b) {
    if (flowing(plan(b).unit) == 0) {
      return;
    }
    --in_room_[static_cast<std::size_t>(plan(b).unit)];
    while (!leaving_.empty() && in_room_[static_cast<std::size_t>(leaving_.front())] == 0) {
      leaving_.pop_front();
      ++free_rooms_;
    }
  }

  // The link
  // -------------------------------------------------------------------------------------------------

  bool start_down() {
    if (on(lane::down).on) {
      return false;
    }
    // One slot stays free for the weights of what is emitted first.
    if (!to_come_down_.empty() && free_slots_ >= (speculating() ? 2 : 1)) {
      int const b = next_of(to_come_down_);
      to_come_down_.erase(b);
      --free_slots_;
      start_copy(lane::down, activity::gradient, b, wire_bytes(b));
      return true;
    }
    if (!sums_to_go_.empty()) {
      int const unit = sums_to_go_.front();
      sums_to_go_.pop_front();
      start_copy_of_sum(lane::down, activity::sum_down, unit);
      return true;
    }
    if (!to_go_home_.empty()) {
      int const b = to_go_home_.front();
      to_go_home_.pop_front();
      start_copy(lane::down, activity::state_down, b, state_bytes(b));
      return true;
    }
    return false;
  }
  void came_down(running const& r) {
    if (r.what == activity::sum_down) {
      sum_is_home_[static_cast<std::size_t>(r.unit)] = true;
      ++free_rooms_;
      return;
    }
    if (r.what == activity::state_down) {
      state(r.bucket).at_home = true;
      --stagings_used_;
      if (streams_weights(r.unit)) {
        weights_are_back(r.bucket);
      }
      return;
    }
    gradient_left(r.bucket);
    bool const held = streams_weights(r.unit) && !judged_ && !s_.state.immediate;
    (held ? held_ : to_serve_).insert(r.bucket);
    if (s_.imitates.judges_on_host && pass_ == passes_.size() && gradients_on_the_way() == 0) {
      verdict_due_ = now_ + m_.device.round_trip;
    }
  }

  bool start_up() {
    if (on(lane::up).on) {
      return false;
    }
    return start_unit() || start_sum() || start_weights() || start_state();
  }
  bool start_unit() {
    if (units_sent_ == visits_.size() || units_sent_ == visit_ + static_cast<std::size_t>(s_.weight_rooms)) {
      return false;
    }
    auto const& v = visits_[units_sent_];
    if (v.after_update && missing_[static_cast<std::size_t>(v.unit)] > 0) {
      return false;
    }
    ++units_sent_;
    auto const elements = s_.streamed_weights[static_cast<std::size_t>(v.unit)];
    double const bytes = static_cast<double>(elements) * s_.element_bytes;
    start_copy(lane::up, activity::unit, v.unit, 0, bytes);
    return true;
  }
  bool start_sum() {
    if (sums_sent_ == sum_uses_.size() || free_rooms_ == 0) {
      return false;
    }
    auto const& next = passes_[sum_uses_[sums_sent_]];
    bool const due = !passes_[pass_].forward && passes_[pass_].micro_batch == next.micro_batch;
    if (!due || !sum_is_home_[static_cast<std::size_t>(next.unit)]) {
      return false;
    }
    ++sums_sent_;
    --free_rooms_;
    start_copy_of_sum(lane::up, activity::sum_up, next.unit);
    return true;
  }
  bool start_weights() {
    if (to_go_up_.empty() || (s_.imitates.returns_last && (unserved_ > 0 || !judged_))) {
      return false;
    }
    int const b = to_go_up_.front();
    to_go_up_.pop_front();
    start_copy(lane::up, activity::weights, b, wire_bytes(b));
    return true;
  }
  bool start_state() {
    if (streamed_.empty() || stagings_used_ == s_.state.stagings) {
      return false;
    }
    auto const& next = state(streamed_[next_streamed_]);
    bool const due = next.ready || !judged_ || !s_.state.immediate;
    if (!next.at_home || !due) {
      return false;
    }
    int const b = streamed_[next_streamed_];
    next_streamed_ = (next_streamed_ + 1) % streamed_.size();
    ++stagings_used_;
    state(b).at_home = false;
    start_copy(lane::up, activity::state_up, b, state_bytes(b));
    return true;
  }
  void went_up(running const& r) {
    if (r.what == activity::unit) {
      ++units_there_;
      return;
    }
    if (r.what == activity::sum_up) {
      ++sums_there_;
      return;
    }
    if (r.what == activity::state_up) {
      state(r.bucket).staged = true;
      may_update(r.bucket);
      return;
    }
    ++free_slots_;
    // Those of an emission in vain are followed by others.
    if (--state(r.bucket).copies == 0 && !state(r.bucket).unserved) {
      weights_are_back(r.bucket);
    }
  }

  // CPU Adam
  // -------------------------------------------------------------------------------------------------

  /// May weights be sent before the verdict? Not where that was in vain too often.
  [[nodiscard]] bool speculating() const {
    return !judged_ && s_.state.speculates && !s_.state.immediate &&
           acceptance_ >= s_.state.least_acceptance();
  }

  static bool emits(adam_task task) { return task == adam_task::emit || task == adam_task::commit_emit; }

  bool start_cpu() {
    if (on(lane::cpu).on) {
      return false;
    }
    bool const emitting = speculating();
    if (!to_serve_.empty() && (judged_ || emitting || s_.state.immediate)) {
      int const b = next_of(to_serve_);
      bool const late = state(b).pending;  // then the weights leave from the slot of the gradient kept
      bool const takes_slot = emitting && !late;
      if (!takes_slot || free_slots_ > 0) {
        to_serve_.erase(b);
        to_commit_.erase(b);
        free_slots_ -= takes_slot ? 1 : 0;
        auto const update = s_.state.flows(plan(b)) ? adam_task::update_in_place : adam_task::update;
        start_adam(b, emitting ? (late ? adam_task::commit_emit : adam_task::emit)
                               : (late ? adam_task::commit_update : update));
        return true;
      }
    }
    if (fetching() || (judged_ && late_ > 0)) {
      return false;
    }
    if (!to_commit_.empty()) {
      // What the backward reaches last: the others may yet be committed in one pass with their next step.
      auto const idle = std::find_if(to_commit_.begin(), to_commit_.end(), [this](int b) {
        return to_come_down_.count(b) == 0 && to_serve_.count(b) == 0;
      });
      int const b = idle != to_commit_.end() ? *idle : *to_commit_.begin();
      to_commit_.erase(b);
      start_adam(b, adam_task::commit);
      return true;
    }
    return false;
  }
  void start_adam(int b, adam_task task) {
    cpu_task_ = task;
    double const fixed = m_.adam.latency / m_.adam_time(task, s_.state.workers, 0);  // in parameters
    start(lane::cpu, activity_of(task), plan(b).unit, b, static_cast<double>(plan(b).count) + fixed);
  }

  void served(int b) {
    bool const late = std::exchange(state(b).pending, false);
    sum_.committed += late ? 1.0 : 0.0;
    if (cpu_task_ == adam_task::commit) {
      ++free_slots_;
      return;
    }
    // Weights leave from a slot: the gradient's own, or where that is kept the one of the gradient before it.
    if (emits(cpu_task_)) {
      ++sum_.emitted;
      if (std::exchange(in_vain_, false)) {
        ++sum_.sent_again;
        to_serve_.insert(b);
        send(b);
        return;
      }
      if (judged_) {
        state(b).pending = true;
        to_commit_.insert(b);
      } else {
        emitted_.push_back(b);
      }
    } else {
      ++sum_.updated;
      free_slots_ += (late ? 1 : 0) + (streams_weights(plan(b).unit) ? 1 : 0);
    }
    state(b).unserved = false;
    --unserved_;
    send(b);
  }
  void send(int b) {
    if (!streams_weights(plan(b).unit)) {
      ++state(b).copies;
      to_go_up_.push_back(b);
    } else if (!state(b).unserved) {
      weights_are_back(b);
    }
  }

  // Results
  // --------------------------------------------------------------------------------------------------

  timeline result(totals const& before, int steps, double shown_from) {
    double const time = now_ - before.time;
    timeline t;
    t.step_time = time / steps;
    for (std::size_t u = 0; u < sum_.waits.size(); ++u) {
      t.waits.push_back((sum_.waits[u] - before.waits[u]) / steps);
    }
    t.waited_for_ranks = (sum_.waited_for_ranks - before.waited_for_ranks) / steps;
    for (std::size_t i = 0; i < t.busy.size(); ++i) { t.busy[i] = (sum_.busy[i] - before.busy[i]) / time; }
    t.emitted = (sum_.emitted - before.emitted) / steps;
    t.committed = (sum_.committed - before.committed) / steps;
    t.updated = (sum_.updated - before.updated) / steps;
    t.sent_again = (sum_.sent_again - before.sent_again) / steps;
    for (int i = 0; i < lanes; ++i) {
      auto const& r = running_[static_cast<std::size_t>(i)];
      if (r.on && now_ > r.begin) {
        done_.push_back({static_cast<lane>(i), r.what, r.unit, r.begin, now_});
      }
    }
    for (auto const& d : done_) {
      t.intervals.push_back(
          {d.where, d.what, d.unit, std::max(d.begin, shown_from) - shown_from, d.end - shown_from});
    }
    return t;
  }

  static constexpr double never = std::numeric_limits<double>::infinity();

  machine const& m_;
  schedule const& s_;
  std::vector<one_pass> passes_;  // of a step
  std::vector<visit> visits_;
  exchange_order const exchanges_;
  std::vector<std::vector<int>> of_unit_;
  std::vector<int> streamed_;  // in the order in which they are staged
  std::vector<bucket_state> buckets_;
  std::array<running, lanes> running_{};

  double now_ = 0.0;
  double could_compute_ = 0.0, device_adam_by_then_ = 0.0;
  double verdict_due_ = never;
  int steps_ = 0;
  std::size_t pass_ = 0;     // the next or running one of the step
  bool judged_ = true;       // nothing has become ready since the last verdict
  double acceptance_ = 1.0;  // as the engine estimates it

  std::vector<int> missing_;  // buckets of a unit whose weights are not back
  int all_missing_ = 0;
  int missing_residents_ = 0;
  int late_ = 0;      // streamed buckets with a gradient whose state is not staged
  int unserved_ = 0;  // host buckets whose weights CPU Adam has yet to make
  int free_slots_ = 0;
  int stagings_used_ = 0;
  std::size_t next_streamed_ = 0;

  std::set<int> to_come_down_, to_serve_, to_commit_;
  std::set<int> held_;  // of streamed weights, until the verdict
  std::deque<int> to_go_up_, to_go_home_, device_queue_;
  std::vector<int> emitted_;  // for the step that is not judged
  adam_task cpu_task_{};
  bool in_vain_ = false;  // what CPU Adam emits now is for a step that was not accepted

  std::size_t visit_ = 0;                         // the next or running one of the step
  std::size_t units_sent_ = 0, units_there_ = 0;  // for visits of the step
  std::size_t exchanged_ = 0, announced_ = 0;     // of the step

  std::vector<std::size_t> sum_uses_;  // the passes that need a sum, which come in this order
  std::size_t sum_use_ = 0, sums_sent_ = 0, sums_there_ = 0;  // of the step
  std::deque<int> sums_to_go_;                                // units
  std::vector<bool> sum_is_home_;                             // by unit
  std::vector<std::size_t> in_room_;                          // by unit, buckets of a final gradient
  std::deque<int> leaving_;                                   // units with these, in the order of their rooms
  int free_rooms_ = 0;

  totals sum_;
  std::vector<interval> done_;
};

}  // namespace

timeline simulate(machine const& m, schedule const& s) {
  expect(!s.units.empty() && s.micro_batches > 0 && s.state.workers > 0, exit_code::internal,
         "a schedule has units, micro-batches and threads");
  auto const& with_ranks = s.with_ranks.units;
  expect(with_ranks.empty() || (with_ranks.size() == s.units.size() && m.peers.known()), exit_code::internal,
         "a schedule of ranks has the exchanges of every unit, and a machine for ranks the rates of them");
  return simulation{m, s}.run();
}

}  // namespace superoffload::offload
