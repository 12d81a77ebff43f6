// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/dtype.hpp>

#include <concepts>

namespace superoffload::zero {

/// Who owns working weights and gradients. A tape enters and leaves units by these calls, all of them from
/// the thread that queues the work and all of them about the order of the compute stream:
/// 1. prefetch(u, pass): a hint that u comes next; never blocks on the device;
/// 2. acquire(u, pass): the unit's buffers, usable by work queued from now on; counted, nests;
/// 3. release(u, pass): matches an acquire; work queued until now may still use the buffers, later work may
/// not;
/// 4. reduce(u): the micro-batch's last gradient of u has been queued.
template <class S>
concept unit_store = requires(S& store, int unit, autograd::pass pass) {
  { store.prefetch(unit, pass) } noexcept -> std::same_as<void>;
  { store.acquire(unit, pass) } -> std::same_as<autograd::unit_buffers>;
  { store.release(unit, pass) } noexcept -> std::same_as<void>;
  { store.reduce(unit) } -> std::same_as<void>;
};

/// A unit's flat gradient in device memory: T [elements], or wide<T>, to be rounded to T by whoever reads it.
struct unit_gradient {
  void* data = nullptr;
  bool is_wide = false;

  /// Calls f with a pointer to the type that the elements have.
  template <element T, class F>
  void with_type(F&& f) const {
    if (is_wide) {
      f(static_cast<wide<T> const*>(data));
    } else {
      f(static_cast<T const*>(data));
    }
  }
};

/// Told by a store when the gradient of a unit is final for the step. It stays until the next step, or, where
/// it flows (zero::flow), until `taken` is called for its unit: that returns when work queued on `stream`
/// from then on may overwrite it, should it also wait for what `ready` has queued on the compute stream.
template <class Stream>
struct gradient_sink {
  void* self = nullptr;
  void (*ready)(void*, int unit, unit_gradient) = nullptr;
  void (*taken)(void*, int unit, Stream& stream) = nullptr;
};

}  // namespace superoffload::zero
