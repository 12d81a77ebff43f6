// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace superoffload::offload {

/// A forward or backward pass of a unit.
struct simulated_pass {
  int unit;          ///< index in schedule::units
  bool forward;      ///< else backward
  bool at_the_edge;  ///< forward: of the first micro-batch; backward: of the last
  int micro_batch;   ///< from 0
};

/// The passes of a step, in order.
inline std::vector<simulated_pass> passes_of(schedule const& s) {
  std::vector<simulated_pass> all;
  auto const units = static_cast<int>(s.units.size());
  for (int k = 0; k < s.micro_batches; ++k) {
    bool const first = k == 0, last = k + 1 == s.micro_batches;
    for (int u = 0; u < units; ++u) { all.push_back({u, true, first, k}); }
    for (int u = units; u-- > 0;) { all.push_back({u, false, last, k}); }
  }
  return all;
}

/// The uploads of offloaded weights. A visit is a run of consecutive passes of one unit, with one upload.
class weight_visits {
public:
  /// The passes for which weights are uploaded once.
  struct visit {
    int unit;           ///< index in schedule::units
    std::size_t last;   ///< its last pass, an index
    bool after_update;  ///< the unit's first visit in the step
  };

  /// Neither `s` nor `passes`, those of passes_of(), is referred to afterwards.
  weight_visits(schedule const& s, std::vector<simulated_pass> const& passes)
      : buffers_{static_cast<std::size_t>(s.weight_buffers)} {
    for (std::size_t p = 0; p < passes.size(); ++p) {
      auto const& pass = passes[p];
      if (!s.offloads_weights(pass.unit)) {
        continue;
      }
      if (visits_.empty() || visits_.back().unit != pass.unit) {
        visits_.push_back({pass.unit, p, pass.forward && pass.at_the_edge});
      }
      visits_.back().last = p;
    }
  }

  /// Are the weights of the next visit on the device?
  [[nodiscard]] bool next_is_there() const { return there_ > next_; }
  /// The visit whose weights are uploaded next, if a buffer is free.
  [[nodiscard]] std::optional<visit> next_to_send() const {
    bool const may = sent_ < visits_.size() && sent_ != next_ + buffers_;
    return may ? std::optional{visits_[sent_]} : std::nullopt;
  }
  void send() { ++sent_; }      ///< the upload for next_to_send() begins
  void arrived() { ++there_; }  ///< the oldest upload has ended
  /// `pass`: the index of the pass that has ended. The last one of a visit frees its buffer.
  void pass_ended(std::size_t pass) {
    next_ += next_ < visits_.size() && visits_[next_].last == pass ? 1 : 0;
  }
  void step_ended() { next_ = sent_ = there_ = 0; }  ///< the next step begins

private:
  std::size_t buffers_;
  std::vector<visit> visits_;
  std::size_t next_ = 0, sent_ = 0, there_ = 0;  // of the step
};

/// Activations that blocks keep in device buffers, in which they take turns. Those of the first blocks leave
/// the device before another block takes the buffer, and come back for their backward.
class activation_copies {
public:
  /// `s` must outlive it.
  explicit activation_copies(schedule const& s)
      : bytes_{s.offloaded_activations}, buffers_{s.activation_buffers} {
    auto const leaves = [](double bytes) { return bytes > 0.0; };
    auto const first = std::find_if(bytes_.begin(), bytes_.end(), leaves);
    first_ = static_cast<int>(first - bytes_.begin());
    leaving_ = static_cast<int>(std::count_if(first, bytes_.end(), leaves));
  }

  [[nodiscard]] double bytes(int unit) const {
    return bytes_[static_cast<std::size_t>(unit)];
  }  ///< of a copy
  /// Is the buffer of a forward free, or the result of the block before on the device for a backward?
  [[nodiscard]] bool may_begin(simulated_pass const& p) const {
    int const block = p.unit - first_;
    if (p.forward) {
      int const before = block - buffers_;
      return before < 0 || before >= leaving_ || down_.done > before;
    }
    return block < 1 || block > leaving_ || up_.done > leaving_ - block;
  }
  /// Call when a pass begins: the first forward of a micro-batch begins anew.
  void pass_began(simulated_pass const& p) {
    if (p.forward && p.unit == first_) {
      down_ = up_ = {};
    }
  }
  /// Call when a pass has ended.
  void pass_ended(simulated_pass const& p) {
    int const block = p.unit - first_;
    if (p.forward) {
      down_.wanted += block >= 0 && block < leaving_ ? 1 : 0;
    } else {
      up_.wanted += block >= buffers_ && block < leaving_ + buffers_ ? 1 : 0;
    }
  }
  /// @{
  /// Takes the unit whose activations are copied next to the host, and to the device.
  std::optional<int> take_down() {
    return down_.take() ? std::optional{first_ + down_.sent - 1} : std::nullopt;
  }
  std::optional<int> take_up() {
    return up_.take() ? std::optional{first_ + leaving_ - up_.sent} : std::nullopt;
  }
  /// @}
  void went_down() { ++down_.done; }  ///< the oldest copy to the host has ended
  void came_up() { ++up_.done; }      ///< the oldest copy to the device has ended

private:
  /// Of the copies in one direction, in their order.
  struct progress {
    int wanted = 0, sent = 0, done = 0;
    bool take() {
      bool const can = sent < wanted;
      sent += can ? 1 : 0;
      return can;
    }
  };

  std::vector<double> const& bytes_;
  int buffers_, first_ = 0, leaving_ = 0;
  progress down_, up_;  // of the micro-batch
};

/// Offloaded gradients: their device buffers, and their sums over micro-batches, which live on the host.
class offloaded_gradients {
public:
  /// `s` must outlive it; `passes` are those of passes_of().
  offloaded_gradients(schedule const& s, std::vector<simulated_pass> const& passes)
      : s_{s}, free_buffers_{s.gradient_buffers}, sum_is_home_(s.units.size()), in_buffer_(s.units.size()) {
    for (auto const& p : passes) {
      if (!p.forward && p.micro_batch > 0 && offloads(p.unit)) {
        sum_uses_.push_back(p);
      }
    }
  }

  [[nodiscard]] bool offloads(int unit) const { return elements(unit) > 0; }  ///< of the unit, any elements?
  /// Sums are kept in 4 bytes an element.
  [[nodiscard]] double bytes_of_sum(int unit) const { return 4.0 * static_cast<double>(elements(unit)); }
  [[nodiscard]] bool has_buffer() const { return free_buffers_ > 0; }  ///< is a device buffer free?
  /// For a gradient that is about to be written; call has_buffer() first.
  void take_buffer() { --free_buffers_; }

  /// Does the backward have a buffer to write to, or the sum to add to?
  [[nodiscard]] bool may_begin(simulated_pass const& p) const {
    return p.micro_batch == 0 ? free_buffers_ > 0 : sums_there_ > sum_use_;
  }
  /// The backward of an offloaded unit has ended. Unless its micro-batch is the last, the sum goes to the
  /// host.
  void backward_ended(simulated_pass const& p) {
    sum_use_ += p.micro_batch > 0 ? 1U : 0U;
    if (!p.at_the_edge) {
      sum_is_home_[static_cast<std::size_t>(p.unit)] = false;
      sums_to_go_.push_back(p.unit);
    }
  }

  /// A final gradient. Its buffer is free when its last bucket has left the device.
  void is_final(int unit, std::size_t buckets) {
    in_buffer_[static_cast<std::size_t>(unit)] = buckets;
    leaving_.push_back(unit);
  }
  /// A bucket of a final gradient has left the device. Buffers become free in their order.
  void bucket_left(int unit) {
    --in_buffer_[static_cast<std::size_t>(unit)];
    while (!leaving_.empty() && in_buffer_[static_cast<std::size_t>(leaving_.front())] == 0) {
      leaving_.pop_front();
      ++free_buffers_;
    }
  }

  /// Takes the next sum to copy to the host.
  std::optional<int> take_sum_to_go() {
    if (sums_to_go_.empty()) {
      return std::nullopt;
    }
    int const unit = sums_to_go_.front();
    sums_to_go_.pop_front();
    return unit;
  }
  /// The sum that take_sum_to_go() gave is on the host; its buffer is free.
  void sum_went_down(int unit) {
    sum_is_home_[static_cast<std::size_t>(unit)] = true;
    ++free_buffers_;
  }
  /// Takes the next sum to copy to the device during `now`, and a buffer for it.
  std::optional<int> take_sum_to_come(simulated_pass const& now) {
    if (sums_sent_ == sum_uses_.size() || free_buffers_ == 0) {
      return std::nullopt;
    }
    auto const& next = sum_uses_[sums_sent_];
    bool const due = !now.forward && now.micro_batch == next.micro_batch;
    if (!due || !sum_is_home_[static_cast<std::size_t>(next.unit)]) {
      return std::nullopt;
    }
    ++sums_sent_;
    --free_buffers_;
    return next.unit;
  }
  void sum_came_up() { ++sums_there_; }  ///< the oldest sum that take_sum_to_come() gave is on the device
  void step_ended() { sum_use_ = sums_sent_ = sums_there_ = 0; }  ///< the next step begins

private:
  [[nodiscard]] std::int64_t elements(int unit) const {
    auto const u = static_cast<std::size_t>(unit);
    return u < s_.offloaded_gradients.size() ? s_.offloaded_gradients[u] : 0;
  }

  schedule const& s_;
  int free_buffers_;
  std::vector<simulated_pass> sum_uses_;                      // backwards that need a sum, in order
  std::size_t sum_use_ = 0, sums_sent_ = 0, sums_there_ = 0;  // of the step
  std::deque<int> sums_to_go_;                                // units
  std::vector<bool> sum_is_home_;                             // by unit
  std::vector<std::size_t> in_buffer_;                        // by unit, buckets of a final gradient
  std::deque<int> leaving_;  // units with these, in the order of their buffers
};

}  // namespace superoffload::offload
