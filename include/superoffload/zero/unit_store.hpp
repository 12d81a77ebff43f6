// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/dtype.hpp>

#include <concepts>

namespace superoffload::zero {

/// The owner of working weights and gradients. A tape enters and leaves units by these calls. All come from
/// the thread that queues the work, and refer to the order of the compute stream:
/// 1. prefetch(u, pass): a hint that u is next; never blocks on the device;
/// 2. acquire(u, pass): the unit's buffers, for work queued from now on; counted, nests;
/// 3. release(u, pass): matches an acquire; work queued until now may still use the buffers, later work may
/// not;
/// 4. reduce(u): the micro-batch's gradient of u is completely queued.
/// A store of ranks that share the rows of a micro-batch also has exchange(from, to, bytes), as
/// autograd::unit_access.
template <class S>
concept unit_store = requires(S& store, int unit, autograd::pass pass) {
  { store.prefetch(unit, pass) } noexcept -> std::same_as<void>;
  { store.acquire(unit, pass) } -> std::same_as<autograd::unit_buffers>;
  { store.release(unit, pass) } noexcept -> std::same_as<void>;
  { store.reduce(unit) } -> std::same_as<void>;
};

/// A unit's flat gradient in device memory: [elements] T, or wide<T>, which its reader rounds to T.
struct unit_gradient {
  void* data = nullptr;  ///< null: the unit is frozen, or its gradient has left the device
  bool is_wide = false;  ///< the elements are wide<T>

  /// Calls f with a pointer to the elements' type.
  template <element T, class F>
  void with_type(F&& f) const {
    if (is_wide) {
      f(static_cast<wide<T> const*>(data));
    } else {
      f(static_cast<T const*>(data));
    }
  }
};

/// Receives a unit's gradient from a store when it is final for the step. The gradient stays until the next
/// step; if it is offloaded, until the store calls `taken`. When `taken` returns, work queued on `stream` may
/// overwrite the gradient, if it also waits for the work that `ready` queued on the compute stream.
template <class Stream>
struct gradient_sink {
  void* self = nullptr;                                     ///< the first argument of each call
  void (*ready)(void*, int unit, unit_gradient) = nullptr;  ///< may queue reads on the compute stream
  /// Not called, and may be null, where nothing is offloaded.
  void (*taken)(void*, int unit, Stream& stream) = nullptr;
};

}  // namespace superoffload::zero
