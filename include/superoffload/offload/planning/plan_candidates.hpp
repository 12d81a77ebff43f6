// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/memory_budget.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/planning/workload.hpp>
#include <superoffload/offload/settings.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// What of a block is offloaded beside its optimizer state. A gradient leaves the device as soon as it is
/// final. With several micro-batches, its sum waits on the host for the next one.
struct offloading {
  /// Do the working weights live in host memory?
  bool weights = false, gradients = false;  ///< do gradients leave the device?
  bool ends = false;                        ///< do both also of the embedding and the head?

  /// Does only optimizer state leave the device?
  [[nodiscard]] bool nothing() const { return !weights && !gradients; }
};

/// What plans share that differ in their levels of recompute alone: the device bytes of candidates without
/// activations, by what is offloaded. The first of these plans counts them.
struct shared_counts {
  /// By the share of state off the device, that of device-updated state, and offloading's members.
  std::map<std::tuple<double, double, bool, bool, bool>, std::size_t> without_activations{};
};

/// The plans that the planner chooses from: those that the settings allow, with their bytes, not simulated.
class plan_candidates {
public:
  /// @{
  /// Fewer are planned only where there are fewer buckets to use them.
  static constexpr int least_pinned_buffers = 4, least_staging_buffers = 4;
  /// @}

  /// All must outlive it. `shared`: of the same units, machine, settings and workload, but for its levels;
  /// null: none.
  plan_candidates(std::vector<autograd::unit_layout> const& units, workload const& w, machine const& m,
                  settings const& s, shared_counts* shared = nullptr)
      : counts_{shared != nullptr ? shared : &own_counts_},
        units_{units},
        w_{w},
        m_{m},
        s_{s},
        budget_{units, w, m},
        cut_{buckets_of(units, s.bucket_bytes / w.element_bytes)} {
    for (auto const& b : cut_) { elements_ += b.count; }
  }
  plan_candidates(plan_candidates const&) = delete;
  plan_candidates& operator=(plan_candidates const&) = delete;

  [[nodiscard]] memory_budget const& budget() const { return budget_; }  ///< of the machine

  /// The kinds of offloading that are allowed. Each takes less device memory than the one before, and more of
  /// the link or the host. A gradient crosses the link once; a sum goes and comes back with every
  /// micro-batch.
  [[nodiscard]] std::vector<offloading> kinds() const {
    std::vector<offloading> all{{},
                                {.gradients = true},
                                {.weights = true, .gradients = true},
                                {.weights = true, .gradients = true, .ends = true}};
    if (budget_.adds_up()) {
      all.insert(all.begin() + 1, {.weights = true});
    }
    std::erase_if(all, [this](offloading what) { return !may(what); });
    return all;
  }
  /// The shares of device-updated state, among the state off the device, that are tried.
  [[nodiscard]] std::vector<double> shares(offloading what) const {
    if (s_.how == mode::none) {
      return {0.0};
    }
    if (s_.device_updated_share) {
      return {*s_.device_updated_share};
    }
    // State that the device updates after the check keeps its gradients on the device until then.
    if (s_.how == mode::zero || (!what.nothing() && w_.checks_gradient)) {
      return {0.0};
    }
    return {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0};
  }

  /// The candidates of a kind. The first fills the device with state, which takes less of the host. With
  /// gradient sums, a second one keeps sums on the device first, since they would cross the link with every
  /// micro-batch.
  [[nodiscard]] std::vector<plan> of(std::size_t level, double share, offloading what) const {
    std::vector<plan> all{filled(level, share, what)};
    if (what.gradients && budget_.adds_up()) {
      keep_sums(all.front());
      if (!s_.ratio) {
        keep_sums(all.emplace_back(candidate(level, 1.0, share, what)));
      }
    }
    return all;
  }

  /// The candidate with as much state on the device as fits, or as the settings ask for.
  [[nodiscard]] plan filled(std::size_t level, double share, offloading what) const {
    if (s_.how == mode::none) {
      return candidate(level, 0.0, 0.0, what);
    }
    if (s_.ratio) {
      return candidate(level, *s_.ratio, share, what);
    }
    auto const fits = [&](double ratio) {
      return without_activations(ratio, share, what) + w_.levels[level].activations <= budget_.device();
    };
    if (m_.device.is_the_host || fits(0.0)) {
      return candidate(level, 0.0, share, what);
    }
    // Bisects for the smallest ratio that fits, to half a bucket. Memory is not linear in it, since weights
    // and gradients leave with their state.
    double const half = 0.5 * static_cast<double>(cut_.front().count) / static_cast<double>(elements_);
    double too_little = 0.0, ratio = 1.0;
    while (ratio - too_little > half) {
      double const middle = 0.5 * (too_little + ratio);
      (fits(middle) ? ratio : too_little) = middle;
    }
    return candidate(level, ratio, share, what);
  }

  /// The same with double-buffered state; nothing where that cannot be faster. Float32 state is bound by its
  /// memory, of which a second copy takes more.
  [[nodiscard]] std::optional<plan> double_buffered(plan const& p) const {
    if (s_.state == state_format::float32 || m_.device.is_the_host || !p.state.speculates ||
        p.state.immediate || bytes_of(p.state, budget_.element_bytes()).whole == 0) {
      return std::nullopt;
    }
    auto twice = p;
    twice.state.double_buffered = true;
    budget_.count(twice);
    return twice;
  }

  /// Takes as many pinned and staging buffers as are useful and fit, and all gradient buffers if they do.
  void widen(plan& p) const {
    if (p.state.offloaded.gradient_of(0)) {
      auto more = p;
      more.state.offloaded.gradient_buffers = gradient_buffers + 1;
      budget_.count(more);
      if (budget_.fits(more)) {
        p = std::move(more);
      }
    }
    int const on_host = p.state.count(tier::host), device_updated = p.state.count(tier::device_updated);
    auto const pinned = bytes_of(p.state, budget_.element_bytes()).pinned_buffer;
    if (pinned > 0) {
      p.state.pinned_buffers = std::min(p.state.pinned_buffers + buffers(budget_.left_on_host(p), pinned),
                                        on_host + least_pinned_buffers);
      budget_.count(p);
    }
    auto const staging = bytes_of(p.state, budget_.element_bytes()).staging_buffer;
    if (staging > 0) {
      p.state.staging_buffers =
          std::min(p.state.staging_buffers + buffers(budget_.left_on_device(p), staging), device_updated);
      budget_.count(p);
    }
  }
  /// Does any candidate fit?
  [[nodiscard]] bool any_fits() const {
    for (auto const what : kinds()) {
      for (double const share : shares(what)) {
        auto const all = of(w_.levels.size() - 1, share, what);
        if (std::any_of(all.begin(), all.end(), [this](plan const& p) { return budget_.fits(p); })) {
          return true;
        }
      }
    }
    return false;
  }
  /// Must the host hold gradients until the check?
  [[nodiscard]] static bool holds(plan const& p) {
    return !p.state.immediate && p.state.offloaded.any_gradient();
  }

private:
  [[nodiscard]] bool may(offloading what) const {
    bool const must = s_.offload_weights == choice::on;
    if (what.nothing()) {
      return !must;
    }
    if ((what.weights && !w_.weights_may_leave) || (what.gradients && !w_.gradients_may_leave) ||
        s_.how == mode::none || units_.size() < 3) {
      return false;
    }
    if (what.ends && w_.with_ranks.tied_to_last >= 0) {
      return false;  // the gradient of tied embeddings is written from the head on
    }
    if (!w_.with_ranks.units.empty() && (w_.checks_gradient || budget_.adds_up() || s_.how == mode::zero)) {
      return false;  // only the device can keep a shard's gradient until the check or the next micro-batch
    }
    if (m_.device.is_the_host && (!must || (what.gradients && budget_.adds_up()))) {
      return false;  // host memory is the same memory
    }
    return what.weights ? s_.offload_weights != choice::off : !must;
  }
  /// Is the unit between the first and the last, where the blocks are?
  [[nodiscard]] bool is_block(int unit) const {
    return unit > 0 && unit + 1 < static_cast<int>(units_.size());
  }
  /// A candidate with `ratio` of the state off the device, `share` of it device-updated, and few buffers.
  [[nodiscard]] plan candidate(std::size_t level, double ratio, double share, offloading what) const {
    plan p;
    p.level = level;
    p.recompute = w_.levels[level].name;
    p.state.activations = w_.levels[level].offloading;
    p.state.buckets = cut_;
    p.state.format = s_.state;
    if (int const ranks = s_.weight_ranks.value_or(0); ranks < w_.with_ranks.ranks && ranks > 0) {
      p.state.weight_ranks = ranks;
      p.state.sums_in_copies = s_.sums_in_copies && budget_.adds_up();
    }
    place_by_share(p.state.buckets, ratio, share);
    if (what.weights) {
      offload_weights(p, what);
    }
    p.state.workers = cpu::optimizer_threads(s_.cpuadam_cores_perc, m_.host.cores);
    p.state.resource_group = s_.resource_group;
    p.state.immediate = !w_.checks_gradient && s_.how != mode::zero && p.state.any_off_the_device();
    p.state.speculates = s_.how != mode::zero && s_.speculation != choice::off;
    p.state.adapts = s_.speculation != choice::on;
    p.state.waits_for_all = s_.how == mode::zero;
    p.state.staging_buffers =
        share > 0.0 ? std::min(least_staging_buffers, p.state.count(tier::device_updated)) : 0;
    if (what.gradients) {
      offload_gradients(p, what);
    }
    set_pinned_buffers(p);
    budget_.count(p);
    return p;
  }
  /// Device bytes of such a candidate without activations, which alone depend on the level. Bisections of
  /// all levels begin with the same ratios, so these are counted once.
  [[nodiscard]] std::size_t without_activations(double ratio, double share, offloading what) const {
    auto const [counted, is_new] =
        counts_->without_activations.try_emplace({ratio, share, what.weights, what.gradients, what.ends});
    if (is_new) {
      auto const p = candidate(0, ratio, share, what);
      counted->second = budget_.on_device(p) - p.on_device.activations;
    }
    return counted->second;
  }
  static void set_pinned_buffers(plan& p) {
    int const on_host = p.state.count(tier::host);
    p.state.pinned_buffers =
        holds(p) ? on_host + least_pinned_buffers : std::min(least_pinned_buffers, on_host + 1);
  }
  /// Offloads the weights of blocks, and of the ends: of all if --offload_weights is on without a ratio, else
  /// of those whose state is off the device.
  void offload_weights(plan& p, offloading what) const {
    auto& offloaded = p.state.offloaded;
    offloaded.weights.assign(units_.size(), false);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      offloaded.weights[u] = what.ends || is_block(static_cast<int>(u));
    }
    bool const all = s_.offload_weights == choice::on && !s_.ratio;
    for (auto& b : p.state.buckets) {
      if (!p.state.weights_offloaded(b)) {
        continue;
      }
      if (all && b.where == tier::resident) {
        b.where = tier::host;
      } else if (b.where == tier::resident) {
        offloaded.weights[static_cast<std::size_t>(b.unit)] = false;
      }
    }
    p.offloaded_weights.assign(units_.size(), 0);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      p.offloaded_weights[u] = offloaded.weights[u] ? units_[u].elements() : 0;
    }
    offloaded.weight_buffers = weight_buffers + (what.ends ? 1 : 0);
  }
  /// Offloads the gradients of blocks, and of the ends, except those that the device needs after the check.
  void offload_gradients(plan& p, offloading what) const {
    p.state.offloaded.gradient_buffers = what.ends ? least_gradient_buffers + 1 : gradient_buffers;
    auto& gradients = p.state.offloaded.gradients;
    gradients.assign(units_.size(), false);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      gradients[u] = (what.ends || is_block(static_cast<int>(u))) && units_[u].trainable();
    }
    for (auto const& b : p.state.buckets) {
      if (b.where != tier::host && !p.state.immediate) {
        gradients[static_cast<std::size_t>(b.unit)] = false;
      }
    }
  }
  /// Keeps gradient sums of blocks on the device as far as they fit. Offloaded ones are evenly spread, so
  /// that the link copies them during the passes of the others.
  void keep_sums(plan& p) const {
    auto& gradients = p.state.offloaded.gradients;
    std::vector<std::size_t> going;
    std::size_t largest = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (is_block(static_cast<int>(u)) && p.state.offloaded.gradient_of(static_cast<int>(u))) {
        going.push_back(u);
        largest = std::max(largest, budget_.gradient_bytes(u));
      }
    }
    if (!budget_.adds_up() || going.empty()) {
      return;
    }
    auto const count = going.size();
    auto stay = static_cast<std::size_t>(buffers(budget_.left_on_device(p), largest));
    stay = stay + static_cast<std::size_t>(gradient_buffers) >= count ? count
                                                                      : stay;  // they need no buffers then
    for (std::size_t i = 0; i < count; ++i) {
      gradients[going[i]] = (i + 1) * stay / count == i * stay / count;
    }
    set_pinned_buffers(p);
    budget_.count(p);
  }
  /// How many buffers of `each` bytes fit in `left` bytes.
  static int buffers(std::int64_t left, std::size_t each) {
    return static_cast<int>(std::clamp<std::int64_t>(left / static_cast<std::int64_t>(each), 0, 1 << 20));
  }

  /// Device buffers for offloaded weights of blocks: one in use and one being filled. For their offloaded
  /// gradients: one being written, one being copied, and one between, which a plan whose ends leave may lack.
  /// Embedding and head share one more.
  static constexpr int weight_buffers = 2, gradient_buffers = 3, least_gradient_buffers = 2;

  mutable shared_counts own_counts_;
  shared_counts* counts_;
  std::vector<autograd::unit_layout> const& units_;
  workload const& w_;
  machine const& m_;
  settings const& s_;
  memory_budget budget_;
  placement cut_;
  std::int64_t elements_ = 0;
};

}  // namespace superoffload::offload
