// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/collectives.hpp>
#include <superoffload/zero/buffer_sizes.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace superoffload::offload {
namespace detail {

/// Goes through the passes as the tape does, and takes buffers as zero::prefetcher and zero::sharded_store
/// do.
class store {
public:
  store(collectives const& e, configuration const& of_rank, int micro_batches)
      : e_{e},
        micro_batches_{micro_batches},
        copies_{zero::weight_copies::among(e.ranks, of_rank.weight_ranks)},
        sums_in_copies_{of_rank.sums_in_copies && micro_batches > 1},
        exchanged_(e.units.size()),
        weight_sizes_{sizes_of(e, &unit_collectives::weights, of_rank.buffers.weights)},
        gradient_sizes_{sizes_of(e, &unit_collectives::gradient, of_rank.buffers.gradients)},
        weights_(static_cast<std::size_t>(weight_sizes_.buffers())),
        gradients_(static_cast<std::size_t>(gradient_sizes_.buffers())) {}

  collective_order step() {
    order_ = {};
    synchronized_ = needed_next_ = 0;
    for (auto& r : weights_) { r.filled = r.left = 0; }
    for (auto& r : gradients_) { r.summed = 0; }
    for (int k = 0; k < micro_batches_; ++k) { micro_batch(k + 1 == micro_batches_); }
    announce();
    for (std::size_t u = 0; u < exchanged_.size(); ++u) {
      exchanged_[u] = exchanged_[u] && !trains(static_cast<int>(u));
    }
    return std::move(order_);
  }

private:
  static constexpr int no_unit = -1;

  struct weight_buffer {
    int unit = no_unit;
    bool used = false;
    std::int64_t touched = 0;  // time of its last fill or release
    std::size_t filled = 0;    // operations that have ended when it is filled
    std::size_t left = 0;      // passes that have ended when it is free
  };
  struct gradient_buffer {
    int unit = no_unit;
    std::size_t summed = 0;  // operations that have ended when it is free
  };
  /// A pass's use of a unit. A pass uses its own unit; with tied embeddings, the last one uses a second.
  struct visit {
    int unit;
    bool begins, ends;  // the pass
  };

  /// A buffer holds the bytes that are exchanged and the rank's own shard, in the same ratio for all units:
  /// the exchanged bytes are enough to tell sizes apart.
  static zero::buffer_sizes<double> sizes_of(collectives const& e, double unit_collectives::* bytes,
                                             int buffers) {
    std::vector<double> of_units;
    for (auto const& u : e.units) { of_units.push_back(u.*bytes); }
    return {of_units, buffers, e.tied_to_last >= 0};
  }
  [[nodiscard]] unit_collectives const& bytes_of(int unit) const {
    return e_.units[static_cast<std::size_t>(unit)];
  }

  [[nodiscard]] int last_unit() const { return static_cast<int>(e_.units.size()) - 1; }
  [[nodiscard]] bool trains(int unit) const { return bytes_of(unit).gradient > 0.0; }

  void micro_batch(bool is_last) {
    std::vector<std::vector<int>> passes;
    auto const add = [&](int unit) {
      passes.push_back({unit});
      if (unit == last_unit() && e_.tied_to_last >= 0) {
        passes.back().push_back(e_.tied_to_last);
      }
    };
    for (int u = 0; u <= last_unit(); ++u) { add(u); }
    for (int u = last_unit(); u >= 0; --u) { add(u); }
    std::vector<int> visits;
    for (auto const& units : passes) { visits.insert(visits.end(), units.begin(), units.end()); }
    std::vector<int> uses(e_.units.size());
    std::size_t visited = 0;
    for (std::size_t p = 0; p < passes.size(); ++p) {
      bool const backward = p >= e_.units.size();
      order_.needed.push_back(std::exchange(needed_next_, 0));
      for (int const u : passes[p]) {
        uses[static_cast<std::size_t>(u)] += backward ? 0 : 1;
        acquire(u, backward || passes[p].front() == last_unit());
        if (++visited < visits.size()) {
          fetch(visits[visited]);  // prefetch, if a buffer is free
        }
      }
      auto const ended = order_.needed.size();
      for (int const u : passes[p]) {
        auto& r = *find(u);
        r.used = false;
        r.left = ended;
        r.touched = ++clock_;
        if (backward && --uses[static_cast<std::size_t>(u)] == 0 && trains(u)) {
          reduce(u, is_last);
        }
      }
      if (p + 1 == e_.units.size()) {
        synchronized_ = ended;  // the host waits for the loss before it queues on
      }
    }
  }

  void acquire(int unit, bool with_gradient) {
    expect(fetch(unit), exit_code::internal, "unit ", unit, " finds no buffer to be gathered into");
    auto& r = *find(unit);
    r.used = true;
    auto& needed = order_.needed.back();
    needed = std::max(needed, r.filled);
    if (with_gradient && trains(unit)) {
      needed = std::max(needed, buffer_for_gradient(unit).summed);
    }
  }
  bool fetch(int unit) {
    if (find(unit) != nullptr) {
      return true;
    }
    weight_buffer* oldest = nullptr;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      auto& r = weights_[i];
      if (!r.used && weight_sizes_.suits(static_cast<int>(i), bytes_of(unit).weights) &&
          (oldest == nullptr || r.touched < oldest->touched)) {
        oldest = &r;
      }
    }
    if (oldest == nullptr) {
      return false;
    }
    auto const after = std::max(synchronized_, oldest->left);
    if (several_copies()) {
      if (auto const u = static_cast<std::size_t>(unit); !exchanged_[u]) {
        exchanged_[u] = true;
        add_between(activity::gather, unit, bytes_of(unit).weights, after);
      }
      add_within(activity::gather, unit, bytes_of(unit).weights, after);
    } else {
      order_.operations.push_back({activity::gather, unit, bytes_of(unit).weights, after});
    }
    oldest->unit = unit;
    oldest->filled = order_.operations.size();
    oldest->touched = ++clock_;
    return true;
  }
  weight_buffer* find(int unit) {
    auto const at =
        std::find_if(weights_.begin(), weights_.end(), [&](auto const& r) { return r.unit == unit; });
    return at == weights_.end() ? nullptr : &*at;
  }

  gradient_buffer& buffer_for_gradient(int unit) {
    for (auto& r : gradients_) {
      if (r.unit == unit) {
        return r;
      }
    }
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      auto const next = next_gradient_buffer_;
      auto& r = gradients_[next];
      next_gradient_buffer_ = (next + 1) % gradients_.size();
      if (r.unit == no_unit && gradient_sizes_.suits(static_cast<int>(next), bytes_of(unit).gradient)) {
        r.unit = unit;
        return r;
      }
    }
    fail(exit_code::internal, "the gradient of unit ", unit, " finds no buffer");
  }

  [[nodiscard]] bool several_copies() const { return copies_.of_each < e_.ranks; }
  /// @{
  /// Adds what an operation over all ranks, which sends so many bytes, is among the ranks of a copy, and
  /// among the owners of a part of it.
  void add_within(activity what, int unit, double bytes, std::size_t after) {
    auto const share = (copies_.of_each - 1.0) * copies_.number() / (e_.ranks - 1.0);
    order_.operations.push_back({what, unit, share * bytes, after, copies_.within()});
  }
  void add_between(activity what, int unit, double bytes, std::size_t after) {
    auto const share = (copies_.number() - 1.0) / (e_.ranks - 1.0);
    order_.operations.push_back({what, unit, share * bytes, after, copies_.between()});
  }
  /// @}

  void reduce(int unit, bool is_last) {
    auto const after = order_.needed.size();
    if (several_copies() && sums_in_copies_) {
      add_within(activity::reduce, unit, bytes_of(unit).gradient, after);
      if (is_last) {
        add_between(activity::reduce, unit, bytes_of(unit).sum, after);
      }
    } else {
      order_.operations.push_back({activity::reduce, unit, bytes_of(unit).gradient, after});
    }
    auto& buffer = buffer_for_gradient(unit);
    buffer = {no_unit, order_.operations.size()};
    if (is_last) {
      if (auto* const r = find(unit)) {  // its update comes next, so the gathered copy is out of date
        r->unit = no_unit;
        r->touched = 0;
      }
      announce();
      summed_ = unit;
      summed_by_ = order_.operations.size();
    }
  }
  /// Announces the unit that was reduced last. The reader of its gradient waits for it, and so does the next
  /// pass.
  void announce() {
    if (summed_ != no_unit) {
      order_.announcements.push_back({std::exchange(summed_, no_unit), order_.needed.size(), summed_by_});
      needed_next_ = summed_by_;
    }
  }

  collectives const& e_;
  int micro_batches_;
  zero::weight_copies copies_;
  bool sums_in_copies_;
  std::vector<bool> exchanged_;  // by unit: copies have its new weights
  zero::buffer_sizes<double> weight_sizes_, gradient_sizes_;
  std::vector<weight_buffer> weights_;
  std::vector<gradient_buffer> gradients_;
  std::size_t next_gradient_buffer_ = 0;
  std::int64_t clock_ = 0;
  std::size_t synchronized_ = 0;  // passes that had ended when the host last waited for the device
  std::size_t needed_next_ = 0;
  int summed_ = no_unit;  // reduced but not announced
  std::size_t summed_by_ = 0;
  collective_order order_;
};

}  // namespace detail

SUPEROFFLOAD_INLINE double seconds_of(machine const& m, collective_order::operation const& o) {
  auto const rates = m.peers.of(o.among);
  return rates.latency + o.bytes / (o.what == activity::gather ? rates.all_gather : rates.reduce_scatter);
}

SUPEROFFLOAD_INLINE collective_order order_of(collectives const& e, configuration const& of_rank,
                                              int micro_batches) {
  if (e.units.empty()) {
    return {};
  }
  expect(of_rank.weight_ranks == 0 || (e.ranks > 0 && e.ranks % of_rank.weight_ranks == 0),
         exit_code::internal, of_rank.weight_ranks,
         " ranks keep a copy of the weights, expected a divisor of ", e.ranks);
  detail::store steps{e, of_rank, micro_batches};
  steps.step();
  return steps.step();
}

}  // namespace superoffload::offload
