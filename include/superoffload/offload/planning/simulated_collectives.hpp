// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/collectives.hpp>
#include <superoffload/offload/planning/schedule.hpp>
#include <superoffload/offload/planning/simulated_passes.hpp>

#include <cstddef>
#include <optional>

namespace superoffload::offload {

/// The progress of a rank's collectives in a step. `pass` is the number of passes that have ended.
class simulated_collectives {
public:
  /// Takes a copy of what it needs.
  explicit simulated_collectives(schedule const& s)
      : order_{order_of(s.with_ranks, s.state, s.micro_batches)} {}

  /// Are there other ranks?
  [[nodiscard]] bool any() const { return !order_.needed.empty(); }
  /// Have all collectives ended that the next pass needs?
  [[nodiscard]] bool enough_for(std::size_t pass) const {
    return !any() || pass >= order_.needed.size() || ended_ >= order_.needed[pass];
  }

  /// The next operation, if the passes that it waits for have ended; else null.
  [[nodiscard]] collective_order::operation const* next(std::size_t pass) const { return at(ended_, pass); }
  void ended() { ++ended_; }  ///< the operation that next() gave has ended
  /// Is the next operation a reduction without a buffer for its result? The host waits for the buffer before
  /// it queues anything else.
  [[nodiscard]] bool sum_waits_for_buffer(std::size_t pass, bool runs,
                                          offloaded_gradients const& gradients) const {
    auto const* const o = gradients.has_buffer() ? nullptr : at(ended_ + (runs ? 1U : 0U), pass);
    return o != nullptr && o->what == activity::reduce && gradients.offloads(o->unit);
  }

  /// The unit of the next reduced gradient that is announced, if that can happen by now.
  std::optional<int> take_announcement(std::size_t pass) {
    if (all_announced()) {
      return std::nullopt;
    }
    auto const& a = order_.announcements[announced_];
    if (pass < a.after || ended_ < a.operations) {
      return std::nullopt;
    }
    ++announced_;
    return a.unit;
  }
  /// Are all gradients of the step announced?
  [[nodiscard]] bool all_announced() const { return announced_ == order_.announcements.size(); }
  void step_ended() { ended_ = announced_ = 0; }  ///< the next step begins

private:
  [[nodiscard]] collective_order::operation const* at(std::size_t index, std::size_t pass) const {
    bool const due = index < order_.operations.size() && pass >= order_.operations[index].after;
    return due ? &order_.operations[index] : nullptr;
  }

  collective_order order_;
  std::size_t ended_ = 0, announced_ = 0;  // of the step
};

}  // namespace superoffload::offload
