// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/timeline.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace superoffload::offload {

/// Simulated time and the work of each lane. A lane does one thing at a time, at a speed that depends on the
/// other lanes.
class lane_clock {
public:
  static constexpr double never = std::numeric_limits<double>::infinity();  ///< as `due`: nothing is due

  /// What a lane does, or has done last.
  struct work {
    bool on = false;     ///< does it run?
    activity what{};     ///< the kind of work
    int unit = 0;        ///< index in the order of the forward
    int bucket = 0;      ///< index in the configuration; 0 for work on a whole unit
    double left = 0.0;   ///< compute and collectives: s; cpu: parameters; others: bytes
    double begin = 0.0;  ///< s, as now()
  };

  /// `m` must outlive the clock. `workers`: the threads of CPU Adam.
  lane_clock(machine const& m, int workers) : m_{m}, workers_{workers} {}

  [[nodiscard]] double now() const { return now_; }              ///< s since the simulation began
  [[nodiscard]] bool is_busy(lane l) const { return at(l).on; }  ///< is it at work?
  /// Is `what` the lane's work now?
  [[nodiscard]] bool does(lane l, activity what) const { return at(l).on && at(l).what == what; }
  /// Seconds that each lane has worked.
  [[nodiscard]] std::array<double, lanes> const& worked() const { return worked_; }

  /// Begins work on an idle lane. `amount` is in the unit of work::left.
  void start(lane l, activity what, int unit, int bucket, double amount) {
    lanes_[static_cast<std::size_t>(l)] = {true, what, unit, bucket, amount, now_};
  }
  /// The same for a copy. The link's latency is added as bytes at the rate of a copy alone.
  void start_copy(lane l, activity what, int unit, int bucket, double bytes) {
    double const rate = l == lane::down ? m_.link.alone.down : m_.link.alone.up;
    start(l, what, unit, bucket, bytes + m_.link.latency * rate);
  }
  /// The same for a task of CPU Adam on `count` parameters. The latency of a task is added as parameters.
  void start_adam(adam_task task, int unit, int bucket, std::int64_t count) {
    for (int directions = 0; directions < 3; ++directions) {
      adam_speeds_[static_cast<std::size_t>(directions)] = 1.0 / m_.adam_time(task, workers_, directions);
    }
    double const fixed = m_.adam.latency / m_.adam_time(task, workers_, 0);  // in parameters
    start(lane::cpu, activity_of(task), unit, bucket, static_cast<double>(count) + fixed);
  }

  /// Seconds to the next end of an activity, or to `due`. \throws error(cannot_fit) for a deadlock.
  [[nodiscard]] double next(double due) {
    double dt = due - now_;
    for (std::size_t i = 0; i < speeds_.size(); ++i) {
      speeds_[i] = speed_of(static_cast<lane>(i));
      if (speeds_[i] > 0.0) {
        dt = std::min(dt, lanes_[i].left / speeds_[i]);
      }
    }
    expect(std::isfinite(dt), exit_code::cannot_fit,
           "the offloaded step is in a deadlock: there are too few pinned buffers, or too few for gradients "
           "before the check; keep more memory for them");
    return dt;
  }
  /// Advances by the result of next(due). \returns which lanes have ended their work.
  std::array<bool, lanes> advance(double dt, double due) {
    std::array<bool, lanes> ended{};
    for (std::size_t i = 0; i < ended.size(); ++i) {
      if (speeds_[i] > 0.0) {
        worked_[i] += dt;
        ended[i] = lanes_[i].left <= speeds_[i] * dt * (1.0 + 1e-12);
        lanes_[i].left -= speeds_[i] * dt;
      }
    }
    now_ = dt == due - now_ ? due : now_ + dt;
    return ended;
  }
  /// Ends the lane's work. \returns it, until the lane starts again.
  work const& end(lane l) {
    auto& r = lanes_[static_cast<std::size_t>(l)];
    r.on = false;
    note(l, r);
    return r;
  }

  /// All work since forget(), with what still runs, in seconds after `from`.
  [[nodiscard]] std::vector<interval> intervals(double from) {
    for (int i = 0; i < lanes; ++i) {
      if (auto const& r = at(static_cast<lane>(i)); r.on) {
        note(static_cast<lane>(i), r);
      }
    }
    std::vector<interval> all;
    for (auto const& d : done_) {
      all.push_back({d.where, d.what, d.unit, std::max(d.begin, from) - from, d.end - from});
    }
    return all;
  }
  /// Forgets the work that has ended.
  void forget() { done_.clear(); }

private:
  static activity activity_of(adam_task task) {
    if (task == adam_task::update_in_place) {
      return activity::update;
    }
    return static_cast<activity>(static_cast<int>(activity::update) + static_cast<int>(task));
  }

  [[nodiscard]] work const& at(lane l) const { return lanes_[static_cast<std::size_t>(l)]; }
  [[nodiscard]] double speed_of(lane l) const { return at(l).on ? rate(l) : 0.0; }
  [[nodiscard]] double rate(lane l) const {
    bool const down = is_busy(lane::down), up = is_busy(lane::up);
    auto const beside = is_busy(lane::cpu) ? m_.link.beside_adam : link_rates{1.0, 1.0};
    switch (l) {
      case lane::compute:
        return is_busy(lane::device_adam) ? 0.0 : is_busy(lane::collective) ? m_.peers.compute_beside : 1.0;
      case lane::device_adam:
        return m_.device.bandwidth;
      case lane::down:
        return beside.down * (up ? m_.link.both : m_.link.alone).down;
      case lane::up:
        return beside.up * (down ? m_.link.both : m_.link.alone).up;
      case lane::collective:
        return is_busy(lane::compute) && !is_busy(lane::device_adam) ? m_.peers.beside_compute : 1.0;
      case lane::cpu:
        break;
    }
    return adam_speeds_[(down ? 1U : 0U) + (up ? 1U : 0U)];
  }
  void note(lane l, work const& r) {
    if (now_ > r.begin) {
      done_.push_back({l, r.what, r.unit, r.begin, now_});
    }
  }

  machine const& m_;
  int workers_;
  double now_ = 0.0;
  std::array<work, lanes> lanes_{};
  std::array<double, lanes> speeds_{};   // of the lanes, until the next end of an activity
  std::array<double, 3> adam_speeds_{};  // parameters a second, while so many directions of the link are busy
  std::array<double, lanes> worked_{};
  std::vector<interval> done_;
};

}  // namespace superoffload::offload
