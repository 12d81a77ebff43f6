// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/plan_candidates.hpp>
#include <superoffload/offload/planning/plan_refusal.hpp>
#include <superoffload/offload/planning/planner.hpp>
#include <superoffload/offload/planning/step_bound.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace superoffload::offload {
namespace detail {

/// Finds the fastest candidate by simulation.
class search {
public:
  search(std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
         settings const& s, double limit = std::numeric_limits<double>::infinity(),
         shared_counts* shared = nullptr)
      : units_{units},
        w_{w},
        m_{with_state(m, s.state, static_cast<std::size_t>(w.element_bytes))},
        rested_{with_gemms_for(m_, 0.0)},
        s_{s},
        limit_{limit},
        candidates_{units, w, m_, s, shared} {}

  plan run() {
    auto const all = candidates_.kinds();
    expect(!all.empty(), exit_code::bad_input,
           "--offload_weights is on: expected --offload auto, super or zero, and a model with blocks");
    for (auto const what : all) {
      if (!is_perfect()) {
        try_kind(what);
      }
    }
    if (!best_ && std::isfinite(limit_)) {
      plan none;
      none.fits = false;
      return none;
    }
    return best_ ? *std::move(best_) : plan_refusal{candidates_, units_, w_, m_, s_}.make();
  }

  [[nodiscard]] plan keep_whole(plan p) const {
    // Memory that the device shares with the host is left to other programs.
    if (!p.fits || m_.device.is_the_host) {
      return p;
    }
    auto more = p;
    for (more.state.buffers.weights = p.gathered_units; more.state.buffers.weights > p.state.buffers.weights;
         --more.state.buffers.weights) {
      candidates_.budget().count(more);
      if (candidates_.budget().fits(more)) {
        evaluate(more);
        finish(more);
        return more.step_time < p.step_time ? more : p;
      }
    }
    return p;
  }

private:
  /// How fast GEMMs are depends on their share of the step, which is simulated once to find it.
  void evaluate(plan& p) const {
    p.step = simulate(m_, schedule_of(p, w_, m_));
    if (m_.device.rested > 1.0) {
      double const gemms = w_.micro_batches * gemm_time(m_, w_, w_.levels[p.level]);
      auto const m = with_gemms_for(m_, gemms / p.step.step_time);
      p.step = simulate(m, schedule_of(p, w_, m));
    }
    p.step_time = p.step.step_time;
  }

  /// Adds those that fit, with their least times as step times, each also with double-buffered state.
  void collect(std::vector<plan> all, std::vector<plan>& into) const {
    auto const add = [&](plan& p) {
      if (candidates_.budget().fits(p)) {
        candidates_.widen(p);
        p.step_time = (1.0 - 1e-9) * least_step_time(p, w_, rested_);
        into.push_back(std::move(p));
      }
    };
    for (auto& p : all) {
      auto twice = candidates_.double_buffered(p);
      add(p);
      if (twice) {
        add(*twice);
      }
    }
  }

  /// Keeps the best of the collected candidates and of the best so far; of equal ones, the first. Simulates
  /// those with the least times first, so that most of the others need no simulation.
  void choose(std::vector<plan> all) {
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return all[i].step_time; });
    std::optional<std::size_t> chosen;
    for (auto const i : order) {
      auto& p = all[i];
      if (beyond_limit(p) || (best_ && !is_better(p, *best_))) {
        continue;
      }
      evaluate(p);
      bool const ties = best_ && chosen && i < *chosen && p.step_time == best_->step_time &&
                        p.state.any_off_the_device() == best_->state.any_off_the_device();
      if (!best_ || is_better(p, *best_) || ties) {
        best_ = std::move(p);
        chosen = i;
      }
    }
  }

  /// Can the plan neither be of use nor, because less leaves the device, keep another from being chosen?
  [[nodiscard]] bool beyond_limit(plan const& p) const {
    return (p.state.any_off_the_device() ? 1.0 : worth_leaving) * p.step_time > limit_;
  }

  static constexpr double worth_a_copy = 1.03;  // a second copy of state is for steps that are 3 % faster

  /// Is it faster, and if state leaves the device, is that worth_leaving? A second copy of state must be
  /// worth its memory.
  static bool is_better(plan const& p, plan const& than) {
    bool const leaves = p.state.any_off_the_device(), left = than.state.any_off_the_device();
    auto const cost = [](plan const& one) {
      return (one.state.double_buffered ? worth_a_copy : 1.0) * one.step_time;
    };
    return leaves == left ? cost(p) < cost(than)
           : leaves       ? p.step_time < worth_leaving * than.step_time
                          : than.step_time >= worth_leaving * p.step_time;
  }

  /// Nothing leaves the device and nothing is recomputed: no plan is faster.
  [[nodiscard]] bool is_perfect() const {
    return best_ && best_->level == 0 && !best_->state.any_off_the_device() &&
           best_->offloaded_weights.empty();
  }

  /// Finds the best plan of a kind. It replaces the plan of an earlier kind only if it is clearly faster,
  /// since earlier kinds take less of the host and of the link.
  void try_kind(offloading what) {
    auto before = std::exchange(best_, std::nullopt);
    double const asked = limit_;
    if (before) {
      limit_ = std::min(limit_, clearly_less * before->step_time);
    }
    try_all(what);
    if (best_ && worth_leaving * best_->step_time <= limit_) {
      refine_share(what);
      if (best_->step_time <= limit_) {
        save_memory();
      }
    }
    limit_ = asked;
    if (before && (!best_ || !clearly_faster(*best_, *before))) {
      best_ = std::move(before);
    }
  }

  void try_all(offloading what) {
    std::vector<plan> all;
    for (std::size_t level = 0; level < w_.levels.size(); ++level) {
      for (double const share : candidates_.shares(what)) {
        auto some = candidates_.of(level, share, what);
        bool const all_resident = !some.front().state.any_off_the_device();
        collect(std::move(some), all);
        if (all_resident) {
          break;  // the share of device-updated state makes no difference
        }
      }
    }
    choose(std::move(all));
  }

  void refine_share(offloading what) {
    if (candidates_.shares(what).size() < 2) {
      return;
    }
    for (double const by : {0.05, 0.025}) {
      double const off = best_->host + best_->device_updated;
      double const now = off > 0.0 ? best_->device_updated / off : 0.0;
      std::vector<plan> around;
      for (double const share : {now - by, now + by}) {
        if (share > 0.0 && share < 1.0) {
          collect(candidates_.of(best_->level, share, what), around);
        }
      }
      choose(std::move(around));
    }
  }
  /// Takes fewer pinned and staging buffers if that costs next to no time.
  void save_memory() {
    constexpr double worth = 1.0 / 300.0;
    double const limit = best_->step_time * (1.0 + worth);
    bool const hold = plan_candidates::holds(*best_);
    auto const shrink = [&](int configuration::* number, int least) {
      int const most = best_->state.*number;
      auto const share_of = [&](double share) {
        return std::max(least, static_cast<int>(std::ceil(share * most)));
      };
      auto const with = [&](int count) {
        auto p = *best_;
        p.state.*number = count;
        candidates_.budget().count(p);
        evaluate(p);
        return p;
      };
      // A real step is less even than a simulated one: it gets half as many more.
      constexpr double more = 1.5;
      int tried = 0;
      for (double const share : {0.05, 0.1, 0.2, 0.35, 0.5}) {
        int const count = share_of(share);
        if (count >= most) {
          return;
        }
        if (count == tried) {
          continue;
        }
        tried = count;
        if (with(count).step_time <= limit) {
          if (int const taken = share_of(more * share); taken < most) {
            best_ = with(taken);
          }
          return;
        }
      }
    };
    if (!hold) {
      shrink(&configuration::pinned_buffers, plan_candidates::least_pinned_buffers);
    }
    shrink(&configuration::staging_buffers, plan_candidates::least_staging_buffers);
    finish(*best_);
  }

  /// Bytes of a micro-batch between ranks that share its rows.
  [[nodiscard]] double exchanged_in(checkpointing_level const& level) const {
    double bytes = 0.0;
    for (auto const& unit : w_.units) { bytes += unit.forward.exchanged + unit.backward.exchanged; }
    for (auto const& again : level.recompute) { bytes += again.exchanged; }
    return bytes;
  }

  void finish(plan& p) const {
    p.exchanged = p.collective_time = 0.0;
    p.gathered_units = static_cast<int>(w_.with_ranks.units.size());
    for (auto const& o : order_of(w_.with_ranks, p.state, w_.micro_batches).operations) {
      p.exchanged += o.bytes;
      p.collective_time += seconds_of(m_, o);
    }
    p.rows_exchanged = w_.micro_batches * exchanged_in(w_.levels[p.level]);
    p.rows_time = p.rows_exchanged > 0.0 ? p.rows_exchanged / m_.peers.all_gather : 0.0;
    p.bound = std::max(step_bound(p, w_, rested_), p.collective_time);
    p.tokens_per_second = static_cast<double>(w_.tokens) / p.step_time;
    p.model_flops_per_second = w_.model_flops / p.step_time;
  }

  std::vector<autograd::unit_layout> const& units_;
  workload const& w_;
  machine m_;
  machine rested_;  ///< with the fastest GEMMs, for bounds
  settings const& s_;
  double limit_;  // s of a step; slower plans are not asked for
  plan_candidates candidates_;
  std::optional<plan> best_;
};

}  // namespace detail

SUPEROFFLOAD_INLINE schedule schedule_of(plan const& p, workload const& w, machine const& m) {
  std::vector<std::int64_t> offloaded(w.units.size());
  for (auto const& b : p.state.buckets) {
    offloaded[static_cast<std::size_t>(b.unit)] += p.state.offloaded.gradient_of(b.unit) ? b.count : 0;
  }
  auto const& level = w.levels[p.level];
  // One buffer is for embedding and head alone; the simulation has blocks take turns in the others.
  bool const ends = p.state.offloaded.weights_of(0) || p.state.offloaded.gradient_of(0);
  auto const for_blocks = [ends](int buffers) { return ends ? std::max(1, buffers - 1) : buffers; };
  return {.units = unit_times(m, w, level),
          .state = p.state,
          .micro_batches = w.micro_batches,
          .element_bytes = w.element_bytes,
          .hit_rate = w.hit_rate,
          .offloaded_weights = p.offloaded_weights,
          .weight_buffers = for_blocks(p.state.offloaded.weight_buffers),
          .offloaded_gradients = std::move(offloaded),
          .gradient_buffers = for_blocks(p.state.offloaded.gradient_buffers),
          .offloaded_activations = level.leaving,
          .activation_buffers = level.buffers,
          .with_ranks = w.with_ranks,
          .imitates = {}};
}

namespace detail {
SUPEROFFLOAD_INLINE void check(std::vector<autograd::unit_layout> const& units, workload const& w,
                               machine const& m) {
  expect(units.size() == w.units.size() && !w.levels.empty() && w.tokens > 0, exit_code::internal,
         "a workload is incomplete: expected the work of every unit, a checkpointing level and tokens");
  bool const grouped =
      std::any_of(w.units.begin(), w.units.end(), [](auto const& u) { return u.forward.grouped > 0.0; });
  expect(!grouped || m.device.grouped_gemms > 0.0, exit_code::bad_input, "machine '", m.name,
         "': device.grouped_gemms_tflops is missing: expected the rate of grouped GEMMs, for a "
         "model with experts");
  bool const float8 =
      std::any_of(w.units.begin(), w.units.end(), [](auto const& u) { return u.forward.float8 > 0.0; });
  expect(!float8 || m.device.float8_gemms > 0.0, exit_code::bad_input, "machine '", m.name,
         "': device.float8_gemms_tflops is missing: expected the rate of FP8 GEMMs, for --dtype fp8");
}
}  // namespace detail

SUPEROFFLOAD_INLINE plan make_plan(std::vector<autograd::unit_layout> const& units, workload const& w,
                                   machine const& m, settings const& s, double limit, shared_counts* shared) {
  detail::check(units, w, m);
  return detail::search{units, w, m, s, limit, shared}.run();
}

SUPEROFFLOAD_INLINE bool can_fit(std::vector<autograd::unit_layout> const& units, workload const& w,
                                 machine const& m, settings const& s) {
  detail::check(units, w, m);
  return plan_candidates{units, w, m, s}.any_fits();
}

SUPEROFFLOAD_INLINE plan keep_whole(plan p, std::vector<autograd::unit_layout> const& units,
                                    workload const& w, machine const& m, settings const& s) {
  detail::check(units, w, m);
  return detail::search{units, w, m, s}.keep_whole(std::move(p));
}

}  // namespace superoffload::offload
