// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/recorder.hpp>

#include <cstddef>

namespace superoffload::train {

/// The store as an engine's tape sees it: it waits until the optimizer has updated a unit's weights before
/// they are used. With a recorder, it records when the device works on units and when it waits for weights.
template <device_policy D, class Store, class State>
class update_aware_store {
public:
  /// The tracks that it records; the first ones of a recorder.
  struct tracks {
    recorder<D>* times = nullptr;  ///< null: nothing is recorded
    /// The device's work on units.
    int compute = -1, wait = -1;  ///< its waits for weights

    /// Adds the tracks to `t`, which may be null.
    explicit tracks(recorder<D>* t) : times{t} {
      if (times != nullptr) {
        compute = times->add_track(resource::device, "device");
        wait = times->add_track(resource::waiting, "device waits for weights");
      }
    }
  };

  /// `waits`: do prefetches wait for the state? They must for ranks, whose collectives follow the order of
  /// calls alone.
  update_aware_store(typename D::stream& compute, Store& store, State& state, bool waits, tracks const& seen)
      : compute_{&compute}, store_{&store}, state_{&state}, waits_{waits}, seen_{seen} {}

  /// @{
  /// The calls of zero/unit_store.hpp. acquire() waits until the state has updated the unit; it also throws
  /// what made prefetch() fail.
  void prefetch(int unit, autograd::pass p) noexcept {
    try {
      // Weights that are not up to date cannot be fetched.
      if (waits_ || state_->returned(unit)) {
        state_->await(unit, store_->reader(unit));
        store_->prefetch(unit, p);
      }
    } catch (...) {}  // acquire() throws it
  }
  autograd::unit_buffers acquire(int unit, autograd::pass p) {
    autograd::unit_buffers buffers;
    record_span(seen_.times, seen_.wait, *compute_, "wait for ", unit, [&] {
      state_->await(unit, store_->reader(unit));
      buffers = store_->acquire(unit, p);
    });
    if (seen_.times != nullptr && acquired_++ == 0) {
      seen_.times->begin(seen_.compute, *compute_,
                         p == autograd::pass::backward ? "backward of " : "forward of ", unit);
    }
    return buffers;
  }
  void release(int unit, autograd::pass p) noexcept {
    if (seen_.times != nullptr && --acquired_ == 0) {
      seen_.times->end(seen_.compute, *compute_);
    }
    store_->release(unit, p);
  }
  void reduce(int unit) { store_->reduce(unit); }
  void exchange(void const* from, void* to, std::size_t bytes)
    requires requires(Store& store) { store.exchange(from, to, bytes); }
  {
    store_->exchange(from, to, bytes);
  }
  /// @}

private:
  typename D::stream* compute_;
  Store* store_;
  State* state_;
  bool waits_;
  tracks seen_;
  int acquired_ = 0;  // counts nested uses
};

}  // namespace superoffload::train
