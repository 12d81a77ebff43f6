// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/step_bound.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace superoffload::offload {
namespace detail {

/// The work of each part of the machine.
struct demand {
  double compute = 0.0;         ///< s of the device
  double host = 0.0;            ///< parameters that CPU Adam updates, with weights on the device
  double in_place = 0.0;        ///< parameters that CPU Adam updates, with weights on the host
  double down = 0.0, up = 0.0;  ///< bytes over the link
};

/// Seconds of CPU Adam while so many directions of the link are busy: with weights on the device, and on the
/// host.
SUPEROFFLOAD_INLINE std::array<double, 2> adam_seconds(machine const& m, int workers, demand const& d,
                                                       int directions) {
  auto const seconds = [&](double parameters, adam_task task) {
    return parameters == 0.0 ? 0.0 : parameters * m.adam_time(task, workers, directions);
  };
  return {seconds(d.host, adam_task::update), seconds(d.in_place, adam_task::update_in_place)};
}

/// Seconds for all of it at once, if nothing waits for anything else. CPU Adam and the links slow each other
/// down for as long as both are busy.
SUPEROFFLOAD_INLINE double busiest(machine const& m, int workers, demand const& d) {
  auto const adam = [&](int directions) {
    auto const [host, in_place] = adam_seconds(m, workers, d, directions);
    return host + in_place;
  };
  double const idle = adam(0), by_one = adam(1) - idle, by_both = adam(2) - idle;
  auto const needed_in = [&](double seconds) {
    auto const beside = [share = std::min(1.0, idle / seconds)](double left) {
      return 1.0 - (1.0 - left) * share;
    };
    double const slow_down = beside(m.link.beside_adam.down), slow_up = beside(m.link.beside_adam.up);
    double const both_down = slow_down * m.link.both.down, both_up = slow_up * m.link.both.up;
    double const overlap = std::min(d.down / both_down, d.up / both_up);
    double const rest_down = (d.down - overlap * both_down) / (slow_down * m.link.alone.down),
                 rest_up = (d.up - overlap * both_up) / (slow_up * m.link.alone.up);
    double const links = overlap + std::max(rest_down, rest_up);
    double const both = std::min(1.0, overlap / seconds);
    double const one = std::min(1.0 - both, (rest_down + rest_up) / seconds);
    return std::max({d.compute, idle + both * by_both + one * by_one, links});
  };
  // needed_in falls as `seconds` grows: bisect for the point where both are equal.
  double least = std::max(d.compute, idle), most = std::max(least, 1e-12);
  while (needed_in(most) > most) { most *= 2.0; }
  for (int i = 0; i < 60; ++i) {
    double const middle = 0.5 * (least + most);
    (middle > 0.0 && needed_in(middle) <= middle ? most : least) = middle;
  }
  return most;
}

/// The least seconds for all of it if nothing waits for anything else: that of the best mix of the states
/// that CPU Adam and the two directions of the link can be in, each busy or idle.
///
/// This is a linear program: the fewest seconds in all states that do the work. Its dual gives each kind of
/// work a price, so that no state earns more than 1 a second; the work is worth as much as it takes seconds.
/// The best prices lie where three of the bounds meet.
SUPEROFFLOAD_INLINE double least_time(machine const& m, int workers, demand const& d) {
  auto const alone = adam_seconds(m, workers, d, 0);
  // Work in the seconds that it takes alone.
  std::array const work{alone[0] + alone[1], d.down / m.link.alone.down, d.up / m.link.alone.up};
  using prices = std::array<double, 3>;
  std::vector<std::pair<prices, double>> bounds;  // the price of what is done in a second is at most this
  for (int state = 1; state < 8; ++state) {
    bool const with_adam = (state & 1) != 0, down = (state & 2) != 0, up = (state & 4) != 0;
    auto const slowed = adam_seconds(m, workers, d, (down ? 1 : 0) + (up ? 1 : 0));
    double rate = 0.0;  // of the task that is slowed least
    for (std::size_t i = 0; with_adam && i < alone.size(); ++i) {
      rate = std::max(rate, alone[i] == 0.0 ? 0.0 : alone[i] / slowed[i]);
    }
    auto const beside = with_adam ? m.link.beside_adam : link_rates{1.0, 1.0};
    auto const& links = down && up ? m.link.both : m.link.alone;
    bounds.push_back({{rate, down ? beside.down * links.down / m.link.alone.down : 0.0,
                       up ? beside.up * links.up / m.link.alone.up : 0.0},
                      1.0});
  }
  for (std::size_t i = 0; i < 3; ++i) {  // prices are not negative
    prices one{};
    one[i] = -1.0;
    bounds.push_back({one, 0.0});
  }
  auto const determinant = [](prices const& a, prices const& b, prices const& c) {
    return a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) +
           a[2] * (b[0] * c[1] - b[1] * c[0]);
  };
  double best = 0.0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      for (std::size_t k = 0; k < j; ++k) {
        std::array const rows{&bounds[i], &bounds[j], &bounds[k]};
        double const all = determinant(rows[0]->first, rows[1]->first, rows[2]->first);
        if (std::abs(all) < 1e-12) {
          continue;
        }
        prices at{};
        for (std::size_t column = 0; column < 3; ++column) {  // Cramer's rule
          auto replaced = std::array{rows[0]->first, rows[1]->first, rows[2]->first};
          for (std::size_t row = 0; row < 3; ++row) { replaced[row][column] = rows[row]->second; }
          at[column] = determinant(replaced[0], replaced[1], replaced[2]) / all;
        }
        bool const allowed = std::ranges::all_of(bounds, [&](auto const& bound) {
          return std::inner_product(at.begin(), at.end(), bound.first.begin(), 0.0) <= bound.second + 1e-9;
        });
        if (allowed) {
          best = std::max(best, std::inner_product(at.begin(), at.end(), work.begin(), 0.0));
        }
      }
    }
  }
  return std::max(d.compute, best);
}

/// The seconds of the busiest part if none slows another.
SUPEROFFLOAD_INLINE double undisturbed(machine const& m, int workers, demand const& d) {
  auto const [host, in_place] = adam_seconds(m, workers, d, 0);
  return std::max({d.compute, host + in_place, d.down / m.link.alone.down, d.up / m.link.alone.up});
}

/// How long a demand takes on a machine, with so many threads of CPU Adam.
using demand_time = double(machine const&, int workers, demand const&);

/// The same, without a look at rates that may be unknown where nothing leaves the device.
SUPEROFFLOAD_INLINE double time_by(demand_time* of, machine const& m, int workers, demand const& d) {
  return d.host + d.in_place + d.down + d.up == 0.0 ? d.compute : of(m, workers, d);
}

/// The seconds of a step, where `whole` tells how long all its work takes if nothing waits, and `after_check`
/// how long the work that waits for the check takes.
SUPEROFFLOAD_INLINE double step_time_by(plan const& p, workload const& w, machine const& m,
                                        demand_time* whole, demand_time* after_check) {
  double passes = 0.0, first_forward = 0.0;
  for (auto const& t : unit_times(m, w, w.levels[p.level])) {
    passes += w.micro_batches * (t.forward + t.backward);
    first_forward += t.forward;
  }
  // Parameters by their update: by CPU Adam with weights on the device (`beside`) or on the host
  // (`in_place`), or on the device. Of the latter some are device-updated, some of these with their weights
  // (`along`).
  double beside = 0.0, in_place = 0.0, along = 0.0, weights = 0.0;
  std::int64_t on_device = 0, device_updated = 0;
  for (auto const& b : p.state.buckets) {
    auto const count = static_cast<double>(b.count);
    bool const offloaded = p.state.weights_offloaded(b);
    if (b.where == tier::host) {
      (offloaded ? in_place : beside) += count;
      continue;
    }
    on_device += b.count;
    if (b.where == tier::device_updated) {
      device_updated += b.count;
      along += offloaded ? count : 0.0;
    }
  }
  for (auto const n : p.offloaded_weights) { weights += static_cast<double>(n); }
  double const e = w.element_bytes;
  state_layout const bytes_of_state{p.state.format, static_cast<std::size_t>(w.element_bytes)};
  double const update = static_cast<double>(bytes_of_state.update_traffic(on_device)) / m.device.bandwidth;
  double const state = static_cast<double>(bytes_of_state.split(device_updated));
  // What stays in the staging buffers need not leave before the next step and come back, unless its weights
  // leave with it.
  auto const staged = p.state.staging_buffers *
                      static_cast<double>(bytes_of_state.split(p.state.largest(tier::device_updated)));
  double const leaves =
      std::max(static_cast<double>(bytes_of_state.split(static_cast<std::int64_t>(along))), state - staged);
  double activations = 0.0;
  for (auto const bytes : w.levels[p.level].leaving) { activations += w.micro_batches * bytes; }
  double const sums = (w.micro_batches - 1.0) * static_cast<double>(p.on_host.gradients);
  int const workers = p.state.workers;
  double const all_at_once =
      time_by(whole, m, workers,
              {.compute = passes + update,
               .host = beside,
               .in_place = in_place,
               .down = (beside + in_place + along) * e + sums + activations + leaves,
               .up = (beside + along + 2.0 * w.micro_batches * weights) * e + sums + activations + leaves});
  if (p.state.immediate) {
    return all_at_once;
  }
  // Device-updated state and weights that are updated in place wait for the check. In a clipped step,
  // everything else on the host does, too.
  double const before = p.state.waits_for_all ? passes : passes - first_forward;
  auto const in_order = [&](double clipped) {
    double const after = time_by(
        after_check, m, workers,
        {.compute = update, .host = clipped, .in_place = in_place, .down = leaves, .up = clipped * e});
    return std::max(all_at_once, before + after);
  };
  bool const ahead = p.state.speculates && w.hit_rate >= p.state.least_hit_rate();
  double const hits = ahead ? w.hit_rate : 0.0;
  return hits * in_order(0.0) + (1.0 - hits) * in_order(beside);
}

}  // namespace detail

SUPEROFFLOAD_INLINE double step_bound(plan const& p, workload const& w, machine const& m) {
  return detail::step_time_by(p, w, m, detail::busiest, detail::busiest);
}

SUPEROFFLOAD_INLINE double least_step_time(plan const& p, workload const& w, machine const& m) {
  // What follows the check has different deadlines, so its parts need not work at the same time.
  return detail::step_time_by(p, w, m, detail::least_time, detail::undisturbed);
}

}  // namespace superoffload::offload
