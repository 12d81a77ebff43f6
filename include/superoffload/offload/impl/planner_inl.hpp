// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/offload/planner.hpp>
#include <superoffload/offload/state_bytes.hpp>
#include <superoffload/offload/step_bound.hpp>
#include <superoffload/zero/room_sizes.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

namespace superoffload::offload {
namespace detail {

SUPEROFFLOAD_INLINE std::string gib(std::size_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

class search {
public:
  search(std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
         settings const& s)
      : units_{units},
        w_{w},
        m_{m},
        s_{s},
        device_{m.device.memory - std::min(m.device.memory, m.device.reserve)},
        host_{m.host.memory - std::min(m.host.memory, m.host.reserve)},
        cut_{buckets_of(units, s.bucket_bytes / w.element_bytes)} {
    for (auto const& b : cut_) { elements_ += b.count; }
  }

  plan run() {
    auto const all = kinds();
    expect(!all.empty(), exit_code::bad_input,
           "--stream_weights is on: expected --offload auto, super or zero, and blocks to stream");
    for (auto const what : all) {
      if (!is_perfect()) {
        try_kind(what);
      }
    }
    return best_ ? *std::move(best_) : refused();
  }

  /// Would run() find a plan? Simulates nothing.
  [[nodiscard]] bool can_fit() const {
    for (auto const what : kinds()) {
      for (double const share : shares(what)) {
        auto const all = candidates(w_.levels.size() - 1, share, what);
        if (std::any_of(all.begin(), all.end(), [this](plan const& p) { return fits(p); })) {
          return true;
        }
      }
    }
    return false;
  }

  [[nodiscard]] plan keep_whole(plan p) const {
    // Where the device's memory is the host's, whatever else runs there has more use for it.
    if (!p.fits || m_.device.is_the_host) {
      return p;
    }
    auto more = p;
    for (more.state.rooms.weights = p.gathered_units; more.state.rooms.weights > p.state.rooms.weights;
         --more.state.rooms.weights) {
      count_bytes(more);
      if (fits(more)) {
        judge(more);
        finish(more);
        return more.step_time < p.step_time ? more : p;
      }
    }
    return p;
  }

private:
  /// What of a block does not stay on the device. Gradients leave as they come; where several micro-batches
  /// are added up, their sum waits on the host for the next one.
  struct flowing {
    bool weights = false, gradients = false;

    [[nodiscard]] bool nothing() const { return !weights && !gradients; }
  };

  /// Those that may be, each taking less memory than the one before, and more of the link or the host. A
  /// gradient that goes once takes little of the link; a sum goes and comes with every micro-batch.
  [[nodiscard]] std::vector<flowing> kinds() const {
    std::vector<flowing> all{{}, {.gradients = true}, {.weights = true, .gradients = true}};
    if (adds_up()) {
      all.insert(all.begin() + 1, {.weights = true});
    }
    std::erase_if(all, [this](flowing what) { return !may(what); });
    return all;
  }
  [[nodiscard]] bool may(flowing what) const {
    bool const must = s_.stream_weights == choice::on;
    if (what.nothing()) {
      return !must;
    }
    if ((what.weights && !w_.weights_may_stream) || (what.gradients && !w_.gradients_may_leave) ||
        s_.how == mode::none || units_.size() < 3) {
      return false;
    }
    if (!w_.with_ranks.units.empty() && (w_.judges || adds_up() || s_.how == mode::zero)) {
      return false;  // a shard's gradient has no other home until the verdict, or until the next one
    }
    if (m_.device.is_the_host && (!must || (what.gradients && adds_up()))) {
      return false;  // it would take of the same memory
    }
    return what.weights ? s_.stream_weights != choice::off : !must;
  }
  [[nodiscard]] bool adds_up() const { return w_.micro_batches > 1; }

  // Bytes
  // ----------------------------------------------------------------------------------------------------

  [[nodiscard]] std::size_t element_bytes() const { return static_cast<std::size_t>(w_.element_bytes); }

  /// Is the unit between the first and the last, where the blocks are?
  [[nodiscard]] bool is_block(int unit) const {
    return unit > 0 && unit + 1 < static_cast<int>(units_.size());
  }
  /// Lets the weights of blocks live on the host: of all where that is asked for and not how much, else of
  /// those whose state is off the device. And gradients leave the device as they come, where they may.
  void stream(plan& p) const {
    auto& flow = p.state.flow;
    flow.weights.assign(units_.size(), false);
    for (std::size_t u = 0; u < units_.size(); ++u) { flow.weights[u] = is_block(static_cast<int>(u)); }
    bool const all = s_.stream_weights == choice::on && !s_.ratio;
    for (auto& b : p.state.buckets) {
      if (!p.state.flows(b)) {
        continue;
      }
      if (all && b.where == place::resident) {
        b.where = place::host;
      } else if (b.where == place::resident) {
        flow.weights[static_cast<std::size_t>(b.unit)] = false;
      }
    }
    p.streamed_weights.assign(units_.size(), 0);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      p.streamed_weights[u] = flow.weights[u] ? units_[u].elements() : 0;
    }
    flow.weight_rooms = weight_rooms;
  }
  /// Gradients of blocks that leave the device as they come. What the device updates after the verdict is
  /// held there.
  void let_gradients_go(plan& p) const {
    p.state.flow.gradient_rooms = gradient_rooms;
    auto& gradients = p.state.flow.gradients;
    gradients.assign(units_.size(), false);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      gradients[u] = is_block(static_cast<int>(u)) && units_[u].trainable();
    }
    for (auto const& b : p.state.buckets) {
      if (b.where != place::host && !p.state.immediate) {
        gradients[static_cast<std::size_t>(b.unit)] = false;
      }
    }
  }
  /// Lets sums stay on the device as far as there is memory. Those that go are evenly spread, so that the
  /// link has the time of those that stay.
  void keep_sums(plan& p) const {
    auto& gradients = p.state.flow.gradients;
    std::vector<std::size_t> going;
    std::size_t largest = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (p.state.flow.gradient_of(static_cast<int>(u))) {
        going.push_back(u);
        largest = std::max(largest, gradient_bytes(u));
      }
    }
    if (!adds_up() || going.empty()) {
      return;
    }
    auto const count = going.size();
    auto stay = static_cast<std::size_t>(rooms(left_on_device(p), largest));
    stay = stay + static_cast<std::size_t>(gradient_rooms) >= count ? count : stay;  // instead of rooms
    for (std::size_t i = 0; i < count; ++i) {
      gradients[going[i]] = (i + 1) * stay / count == i * stay / count;
    }
    set_slots(p);
    count_bytes(p);
  }
  /// Of a unit's whole gradient.
  [[nodiscard]] std::size_t gradient_bytes(std::size_t unit) const {
    bool const wide = units_[unit].wide_gradient() || adds_up();
    return static_cast<std::size_t>(units_[unit].elements()) * (wide ? 4 : element_bytes());
  }
  /// Must the host hold gradients until the verdict?
  [[nodiscard]] static bool holds(plan const& p) { return !p.state.immediate && p.state.flow.any_gradient(); }
  void count_bytes(plan& p) const {
    auto& device = p.on_device = {};
    auto& host = p.on_host = {};
    auto const& flow = p.state.flow;
    std::vector<std::size_t> weights, gradients;  // that take turns in rooms
    std::size_t cells = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      auto const n = static_cast<std::size_t>(units_[u].elements());
      cells += units_[u].trainable() ? static_cast<std::size_t>(kernel::norm_cells(units_[u].elements())) : 0;
      if (flow.weights_of(units_[u].id())) {
        weights.push_back(n * element_bytes());
        host.weights += n * element_bytes();
      } else {
        device.weights += n * element_bytes();
      }
      if (!units_[u].trainable()) {
        continue;
      }
      auto const bytes = gradient_bytes(u);
      if (flow.gradient_of(units_[u].id())) {
        gradients.push_back(bytes);
        host.gradients += adds_up() ? bytes : 0;
      } else {
        device.gradients += bytes;
      }
    }
    using rooms_of = zero::room_sizes<std::size_t>;
    device.weights += rooms_of::alike(weights, flow.weight_rooms).total() + whole_weights(p);
    device.gradients += rooms_of::alike(gradients, flow.gradient_rooms).total() + w_.whole_gradients;
    auto const state = bytes_of(p.state, element_bytes());
    device.state = state.resident;
    host.state = state.whole + state.in_place + state.streamed;
    host.slots = state.pinned_buffer * static_cast<std::size_t>(p.state.slots);
    device.stagings = state.pinned_buffer + state.staging_buffer * static_cast<std::size_t>(p.state.stagings);
    device.activations = w_.levels[p.level].activations;
    device.workspaces = w_.workspaces + cells * sizeof(double);
    host.workspaces = w_.host_workspaces + cells * sizeof(double);
    p.pinned = host.total() - state.whole - state.in_place;
    p.device_available = device_;
    p.host_available = host_;
    auto const share = [&](place where) {
      std::int64_t count = 0;
      for (auto const& b : p.state.buckets) { count += b.where == where ? b.count : 0; }
      return static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, elements_));
    };
    p.host = share(place::host);
    p.streamed = share(place::streamed);
    p.resident = off_the_device(p) == 0 ? 1.0 : share(place::resident);
  }
  /// Of a rank, bytes of the rooms that zero::sharded_store gathers weights into.
  [[nodiscard]] std::size_t whole_weights(plan const& p) const {
    bool const ends_meet = w_.with_ranks.used_by_last >= 0;
    return zero::room_sizes<std::size_t>{w_.whole_weights, p.state.rooms.weights, ends_meet}.total();
  }
  /// Bytes of each that are left beside a plan; below zero when it does not fit.
  [[nodiscard]] std::int64_t left_on_device(plan const& p) const {
    return static_cast<std::int64_t>(device_) - static_cast<std::int64_t>(taken(p.on_device, p.on_host));
  }
  [[nodiscard]] std::int64_t left_on_host(plan const& p) const {
    return static_cast<std::int64_t>(host_) - static_cast<std::int64_t>(taken(p.on_host, p.on_device));
  }
  [[nodiscard]] std::size_t taken(tier_bytes const& here, tier_bytes const& there) const {
    return here.total() + (m_.device.is_the_host ? there.total() : 0);
  }
  [[nodiscard]] bool fits(plan const& p) const { return left_on_device(p) >= 0 && left_on_host(p) >= 0; }

  // Candidates
  // -----------------------------------------------------------------------------------------------

  /// With `ratio` off the device and of that `share` streamed; few slots and stagings.
  [[nodiscard]] plan candidate(std::size_t level, double ratio, double share, flowing what) const {
    plan p;
    p.level = level;
    p.recompute = w_.levels[level].name;
    p.state.buckets = cut_;
    place_by_share(p.state.buckets, ratio, share);
    if (what.weights) {
      stream(p);
    }
    p.state.workers = cpu::optimizer_threads(s_.cpuadam_cores_perc, m_.host.cores);
    p.state.resource_group = s_.resource_group;
    p.state.immediate = !w_.judges && s_.how != mode::zero && off_the_device(p) > 0;
    p.state.speculates = s_.how != mode::zero && s_.speculation != choice::off;
    p.state.adapts = s_.speculation != choice::on;
    p.state.waits_for_all = s_.how == mode::zero;
    p.state.stagings = std::min(least_stagings, count(p, place::streamed));
    if (what.gradients) {
      let_gradients_go(p);
    }
    set_slots(p);
    count_bytes(p);
    return p;
  }
  static void set_slots(plan& p) {
    int const hosts = count(p, place::host);
    p.state.slots = holds(p) ? hosts + least_slots : std::min(least_slots, hosts + 1);
  }
  static int count(plan const& p, place where) {
    return static_cast<int>(std::count_if(p.state.buckets.begin(), p.state.buckets.end(),
                                          [&](bucket const& b) { return b.where == where; }));
  }

  static int off_the_device(plan const& p) { return count(p, place::host) + count(p, place::streamed); }

  /// The candidate with as much state on the device as fits there, or as was asked for.
  [[nodiscard]] plan filled(std::size_t level, double share, flowing what) const {
    if (s_.how == mode::none) {
      return candidate(level, 0.0, 0.0, what);
    }
    if (s_.ratio) {
      return candidate(level, *s_.ratio, share, what);
    }
    auto p = candidate(level, 0.0, share, what);
    if (left_on_device(p) >= 0 || m_.device.is_the_host) {
      return p;
    }
    // The least that has to leave, to half a bucket. What else then leaves with it makes this no straight
    // line.
    double const half = 0.5 * static_cast<double>(cut_.front().count) / static_cast<double>(elements_);
    double too_little = 0.0, ratio = 1.0;
    while (ratio - too_little > half) {
      double const middle = 0.5 * (too_little + ratio);
      (left_on_device(candidate(level, middle, share, what)) < 0 ? too_little : ratio) = middle;
    }
    return candidate(level, ratio, share, what);
  }

  /// The candidates of a kind. Sums that stay are worth more of the device than state: they would go and come
  /// with every micro-batch. But state of which some stays takes less of the host.
  [[nodiscard]] std::vector<plan> candidates(std::size_t level, double share, flowing what) const {
    std::vector<plan> all{filled(level, share, what)};
    if (what.gradients && adds_up()) {
      keep_sums(all.front());
      if (!s_.ratio) {
        keep_sums(all.emplace_back(candidate(level, 1.0, share, what)));
      }
    }
    return all;
  }

  /// Slots and stagings as far as memory goes.
  void widen(plan& p) const {
    int const hosts = count(p, place::host), streamed = count(p, place::streamed);
    auto const slot = bytes_of(p.state, element_bytes()).pinned_buffer;
    if (slot > 0) {
      p.state.slots = std::min(p.state.slots + rooms(left_on_host(p), slot), hosts + least_slots);
      count_bytes(p);
    }
    auto const staging = bytes_of(p.state, element_bytes()).staging_buffer;
    if (staging > 0) {
      p.state.stagings = std::min(p.state.stagings + rooms(left_on_device(p), staging), streamed);
      count_bytes(p);
    }
  }
  static int rooms(std::int64_t left, std::size_t each) {
    return static_cast<int>(std::clamp<std::int64_t>(left / static_cast<std::int64_t>(each), 0, 1 << 20));
  }

  void judge(plan& p) const {
    p.step = simulate(m_, schedule_of(p, w_, m_));
    p.step_time = p.step.step_time;
  }

  /// Tries a candidate; keeps it when it is the fastest.
  void consider(plan p) {
    if (!fits(p)) {
      return;
    }
    widen(p);
    judge(p);
    if (!best_ || p.step_time < best_->step_time) {
      best_ = std::move(p);
    }
  }

  [[nodiscard]] std::vector<double> shares(flowing what) const {
    if (s_.how == mode::none) {
      return {0.0};
    }
    if (s_.streamed_share) {
      return {*s_.streamed_share};
    }
    // What the device updates after the verdict holds its gradients there.
    if (s_.how == mode::zero || (!what.nothing() && w_.judges)) {
      return {0.0};
    }
    return {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0};
  }

  /// Nothing leaves the device and nothing is computed again: no plan is faster.
  [[nodiscard]] bool is_perfect() const {
    return best_ && best_->level == 0 && off_the_device(*best_) == 0 && best_->streamed_weights.empty();
  }

  /// The best plan of a kind, in the place of those before it where it is clearly faster: they take less of
  /// the host and of the link.
  void try_kind(flowing what) {
    auto before = std::exchange(best_, std::nullopt);
    try_all(what);
    if (best_) {
      refine_share(what);
      save_memory();
    }
    if (before && (!best_ || !clearly_faster(*best_, *before))) {
      best_ = std::move(before);
    }
  }

  void try_all(flowing what) {
    for (std::size_t level = 0; level < w_.levels.size(); ++level) {
      for (double const share : shares(what)) {
        auto all = candidates(level, share, what);
        bool const all_resident = off_the_device(all.front()) == 0;
        for (auto& p : all) { consider(std::move(p)); }
        if (all_resident) {
          break;  // nothing is left to be streamed
        }
      }
    }
  }

  void refine_share(flowing what) {
    if (shares(what).size() < 2) {
      return;
    }
    for (double const by : {0.05, 0.025}) {
      double const off = best_->host + best_->streamed;
      double const now = off > 0.0 ? best_->streamed / off : 0.0;
      for (double const share : {now - by, now + by}) {
        if (share > 0.0 && share < 1.0) {
          for (auto& p : candidates(best_->level, share, what)) { consider(std::move(p)); }
        }
      }
    }
  }
  /// Fewer slots and stagings where they do next to nothing.
  void save_memory() {
    constexpr double worth = 1.0 / 300.0;
    double const limit = best_->step_time * (1.0 + worth);
    bool const hold = holds(*best_);
    auto const shrink = [&](int arrangement::* number, int least) {
      auto const with = [&](double share) {
        auto p = *best_;
        p.state.*number = std::max(least, static_cast<int>(std::ceil(share * (p.state.*number))));
        count_bytes(p);
        judge(p);
        return p;
      };
      // Where a simulated step can do with so many, a real one, which is less even, has half as many more.
      constexpr double more = 1.5;
      for (double const share : {0.05, 0.1, 0.2, 0.35, 0.5}) {
        if (with(share).step_time <= limit) {
          if (auto p = with(more * share); p.state.*number < best_->state.*number) {
            best_ = std::move(p);
          }
          return;
        }
      }
    };
    if (!hold) {
      shrink(&arrangement::slots, least_slots);
    }
    shrink(&arrangement::stagings, least_stagings);
    finish(*best_);
  }

  void finish(plan& p) const {
    p.exchanged = p.exchange_time = 0.0;
    p.gathered_units = static_cast<int>(w_.with_ranks.units.size());
    for (auto const& o : order_of(w_.with_ranks, p.state.rooms, w_.micro_batches).operations) {
      p.exchanged += o.bytes;
      p.exchange_time += seconds_of(m_, o);
    }
    p.bound = std::max(step_bound(p, w_, m_), p.exchange_time);
    p.tokens_per_second = static_cast<double>(w_.tokens) / p.step_time;
    p.model_flops_per_second = w_.model_flops / p.step_time;
  }

  // Refusals
  // -------------------------------------------------------------------------------------------------

  plan refused() const {
    auto const all = kinds();
    auto p = least(all.front());
    for (auto const what : all) {
      if (left_on_device(p) < 0) {
        p = least(what);
      }
    }
    p.fits = false;
    p.refusal = left_on_device(p) < 0 ? device_refusal(p) : host_refusal(p);
    return p;
  }
  /// What takes least memory: streaming state, where that is allowed, for it keeps 10 bytes on the host and
  /// not 12.
  [[nodiscard]] plan least(flowing what) const {
    bool const held = !what.nothing() && w_.judges;
    double const share = held || s_.how == mode::zero ? 0.0 : 1.0;
    return filled(w_.levels.size() - 1, s_.streamed_share.value_or(share), what);
  }

  std::string device_refusal(plan const& p) const {
    auto const need = taken(p.on_device, p.on_host);
    auto text = concat("the plan needs ", gib(need),
                       m_.device.is_the_host ? " of memory, but " : " of device memory, but ", gib(device_),
                       " are available; ");
    if (m_.device.is_the_host) {
      return text + concat("it takes ", gib(need - device_),
                           " more, shorter sequences, --freeze or a smaller model");
    }
    if (s_.how == mode::none || (s_.ratio && *s_.ratio < 1.0)) {
      return text + "let more of the optimizer's state leave the device (--offload auto, no --ratio)";
    }
    if (s_.stream_weights == choice::off && w_.weights_may_stream) {
      return text + "let weights be streamed (--stream_weights auto)";
    }
    return text + concat(without_verdict(), "it takes a device with ", gib(need - device_),
                         " more, shorter sequences or a smaller model");
  }
  /// To ranks, whose gradients leave their devices only where nothing waits for the verdict.
  [[nodiscard]] std::string without_verdict() const {
    auto unjudged = w_;
    unjudged.judges = false;
    bool const helps =
        w_.judges && !w_.with_ranks.units.empty() && search{units_, unjudged, m_, s_}.can_fit();
    return helps ? "let gradients leave the device as they come (--max_grad_norm 0 --on_nonfinite stop); "
                   "otherwise "
                 : "";
  }

  std::string host_refusal(plan const& p) const {
    auto const need = taken(p.on_host, p.on_device);
    auto text = concat("the plan needs ", gib(need), " of host memory, but ", gib(host_), " are available; ");
    auto const more = gib(need - host_);
    if (s_.ratio && *s_.ratio > 0.0) {
      return text +
             concat("keep more of the optimizer's state on the device (no --ratio), or use a host with ",
                    more, " more");
    }
    if (s_.how == mode::zero || (s_.streamed_share && *s_.streamed_share < 1.0)) {
      return text +
             concat(
                 "let the device update more of it (--offload super, no --streamed_share): that takes 10 and "
                 "not 12 bytes a parameter; or use a host with ",
                 more, " more");
    }
    auto const activations = p.on_device.activations;
    return text + concat(without_verdict(), "use a host with ", more,
                         " more, freeze tensors, or a smaller micro-batch: its activations take ",
                         gib(activations), " of the device, which state could use");
  }

  static constexpr int least_slots = 4, least_stagings = 4;
  /// Units whose weights and gradients the device holds where they flow: one that is used, one that comes;
  /// one that is written, one that leaves, and one between.
  static constexpr int weight_rooms = 2, gradient_rooms = 3;

  std::vector<autograd::unit_layout> const& units_;
  workload const& w_;
  machine const& m_;
  settings const& s_;
  std::size_t device_, host_;  // bytes available
  placement cut_;
  std::int64_t elements_ = 0;
  std::optional<plan> best_;
};

}  // namespace detail

SUPEROFFLOAD_INLINE schedule schedule_of(plan const& p, workload const& w, machine const& m) {
  std::vector<std::int64_t> flowing(w.units.size());
  for (auto const& b : p.state.buckets) {
    flowing[static_cast<std::size_t>(b.unit)] += p.state.flow.gradient_of(b.unit) ? b.count : 0;
  }
  return {.units = unit_times(m, w, w.levels[p.level]),
          .state = p.state,
          .micro_batches = w.micro_batches,
          .element_bytes = w.element_bytes,
          .acceptance = w.acceptance,
          .streamed_weights = p.streamed_weights,
          .weight_rooms = p.state.flow.weight_rooms,
          .flowing_gradients = std::move(flowing),
          .gradient_rooms = p.state.flow.gradient_rooms,
          .with_ranks = w.with_ranks,
          .imitates = {}};
}

namespace detail {
SUPEROFFLOAD_INLINE void check(std::vector<autograd::unit_layout> const& units, workload const& w,
                               machine const& m) {
  expect(units.size() == w.units.size() && !w.levels.empty() && w.tokens > 0, exit_code::internal,
         "a workload has the work of every unit, a level and tokens");
  bool const grouped =
      std::any_of(w.units.begin(), w.units.end(), [](auto const& u) { return u.forward.grouped > 0.0; });
  expect(
      !grouped || m.device.grouped_products > 0.0, exit_code::bad_input, "machine '", m.name,
      "': device.grouped_products_tflops is missing: expected the rate of products by groups of rows, for a "
      "model with experts");
}
}  // namespace detail

SUPEROFFLOAD_INLINE plan make_plan(std::vector<autograd::unit_layout> const& units, workload const& w,
                                   machine const& m, settings const& s) {
  detail::check(units, w, m);
  return detail::search{units, w, m, s}.run();
}

SUPEROFFLOAD_INLINE bool can_fit(std::vector<autograd::unit_layout> const& units, workload const& w,
                                 machine const& m, settings const& s) {
  detail::check(units, w, m);
  return detail::search{units, w, m, s}.can_fit();
}

SUPEROFFLOAD_INLINE plan keep_whole(plan p, std::vector<autograd::unit_layout> const& units,
                                    workload const& w, machine const& m, settings const& s) {
  detail::check(units, w, m);
  return detail::search{units, w, m, s}.keep_whole(std::move(p));
}

}  // namespace superoffload::offload
