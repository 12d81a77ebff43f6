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

/// What a store is told beside its units and, of a rank, its group.
struct store_options {
  bool accumulates = false;           ///< will a step have several micro-batches?
  gather_buffers buffers{};           ///< of a rank: units that are whole at once
  zero::offloaded_units offloaded{};  ///< what does not stay in device memory
};

/// What a store takes.
struct store_bytes {
  std::size_t weights = 0, gradients = 0;  ///< of device memory
  std::size_t host = 0;                    ///< weights and sums of gradients that live there
};

/// A unit_store as an engine on D in T makes and uses it.
///
/// 1. `bytes(units, options, group)` tells what one takes, and throws error(internal) for options that it
///    cannot follow; the constructor takes device, compute stream, the same three, the sink and a recorder or
///    null. Units, stream, group and recorder outlive it. `group` is null for an engine without ranks; with a
///    group the store is a rank's.
/// 2. For each micro-batch: set_last_micro_batch(last); then what unit_store says. The sink is told of each
///    unit's gradient once it is final, which is at the latest when settle() returns, after the step's last
///    backward. A rank's store adds up micro-batches itself: each backward overwrites. Any other store gives
///    the step's gradient to every backward, which adds to it.
/// 3. weights_changed(): the step's update of what is updated in the compute stream has been queued.
/// 4. weights(unit): where the unit's weights live, or a rank's shard of them; reader(unit): the stream whose
///    work reads them there first. expect_writes(unit): they are about to be written from outside of a step;
///    it waits until nothing reads them.
/// 5. gradient(unit): the final gradient of the last step; null for a unit that is frozen as a whole, and for
///    one whose gradient has left.
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

/// Who has weights and gradients, and where. A policy names its store, and says what an engine with it can
/// be:
/// * `flows`: may weights live in host memory, and gradients leave the device (zero::flow)?
/// * `alone`: is there an engine without a group?
/// * `shards`: is there one with a group, as one of its ranks?
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
