// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/policy.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/offloaded_units.hpp>
#include <superoffload/zero/shard.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <concepts>
#include <cstddef>
#include <vector>

namespace superoffload::zero {

/// The options of a store, besides its units and its group.
struct store_options {
  bool accumulates = false;           ///< will a step have several micro-batches?
  gather_buffers buffers{};           ///< of a rank: how many units are whole at once
  zero::offloaded_units offloaded{};  ///< what is not kept in device memory
  int sequence_ranks = 1;             ///< of a rank: so many neighbours share a micro-batch's rows
  int weight_ranks = 0;  ///< of a rank: so many neighbours keep a copy of the weights; 0: all ranks keep one
  /// Are several micro-batches summed within each copy first, and over the copies once a step?
  bool sums_in_copies = false;
};

/// The memory that a store takes.
struct store_bytes {
  std::size_t weights = 0,  ///< device memory, with buffers
      gradients = 0;        ///< device memory
  std::size_t host = 0;     ///< host memory: weights and sums of gradients
};

/// A unit_store as an engine on device D in element type T constructs and uses it.
///
/// 1. `bytes(units, options, group)` is the memory that a store takes; it throws error(internal) for options
///    that the store does not support. The constructor takes device, compute stream, the same three, the sink
///    and a recorder or null. Units, stream, group and recorder must outlive it. `group` is null for an
///    engine without ranks; with a group the store is one rank's.
/// 2. For each micro-batch: set_last_micro_batch(last), then the calls of unit_store. The sink gets each
///    unit's gradient when it is final, at the latest when settle() returns, after the step's last backward.
///    A rank's store adds up micro-batches itself: each backward overwrites the gradient. With any other
///    store, each backward adds to the step's gradient.
/// 3. weights_changed(): the step's updates on the compute stream are queued.
/// 4. weights(unit): the unit's weights where they live, or the rank's shard of them. reader(unit): the
///    stream whose work reads them first. expect_writes(unit): call before they are written from outside a
///    step; it waits until nothing reads them.
/// 5. gradient(unit): the final gradient of the last step; null for a frozen unit, and for a gradient that
///    has left the device.
template <class S, class D, class T>
concept store = unit_store<S> && device_policy<D> && comm::communicator<typename S::group_type, D> &&
                std::constructible_from<S, D&, typename D::stream&, std::vector<autograd::unit_layout> const&,
                                        store_options const&, typename S::group_type*,
                                        gradient_sink<typename D::stream>, recorder<D>*> &&
                requires(S& s, std::vector<autograd::unit_layout> const& units, store_options const& options,
                         typename S::group_type const* group, bool last, int unit) {
                  { S::bytes(units, options, group) } -> std::same_as<store_bytes>;
                  s.set_last_micro_batch(last);
                  s.settle();
                  s.weights_changed();
                  { s.weights(unit) } -> std::same_as<T*>;
                  { s.reader(unit) } -> std::same_as<typename D::stream&>;
                  s.expect_writes(unit);
                  { s.gradient(unit) } -> std::same_as<unit_gradient>;
                };

/// Which ranks have weights and gradients, and in which memory. A policy names its store, and says what its
/// engines can be:
/// * `offloads`: may weights live in host memory, and gradients leave the device (zero::offloaded_units)?
/// * `alone`: can an engine be without a group?
/// * `shards`: can an engine be a rank of a group?
template <class P, class D, class T>
concept sharding_policy = policy_of<P, category::sharding> && requires {
  { P::offloads } -> std::convertible_to<bool>;
  { P::alone } -> std::convertible_to<bool>;
  { P::shards } -> std::convertible_to<bool>;
  requires P::alone || P::shards;
  typename P::template store<D, T>;
  requires store<typename P::template store<D, T>, D, T>;
};

}  // namespace superoffload::zero
