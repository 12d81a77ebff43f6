// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/core/described_device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/offloaded.hpp>
#include <superoffload/zero/sharded.hpp>
#include <superoffload/zero/sharding_policy.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace superoffload::zero {

/// The sharded store if the engine has a group of ranks, else the offloaded store. This is known when a run
/// begins. A program has one engine for both, so its model code is compiled once.
template <device_policy D, element T, comm::communicator<D> C>
class offloaded_or_sharded_store {
public:
  using alone = offloaded_store<D, T>;     ///< the store without a group
  using of_rank = sharded_store<D, T, C>;  ///< the store of a rank
  using group_type = C;                    ///< of the ranks

  /// The memory of the store that `group` selects; null: no ranks.
  static store_bytes bytes(std::vector<autograd::unit_layout> const& units, store_options const& o,
                           C const* group) {
    return group == nullptr ? alone::bytes(units, o, nullptr) : of_rank::bytes(units, o, group);
  }
  /// Makes the store that `group` selects; null: no ranks. Device, stream, units, group and `times` must
  /// outlive it.
  offloaded_or_sharded_store(D& device, typename D::stream& stream,
                             std::vector<autograd::unit_layout> const& units, store_options const& o,
                             C* group, gradient_sink<typename D::stream> sink, recorder<D>* times = nullptr) {
    if (group == nullptr) {
      alone_.emplace(device, stream, units, o, nullptr, sink, times);
    } else {
      of_rank_.emplace(device, stream, units, o, group, sink, times);
    }
  }

  /// A hint that `unit` is next.
  void prefetch(int unit, autograd::pass p) noexcept {
    with([&](auto& store) { store.prefetch(unit, p); });
  }
  /// The unit's buffers, for work queued on the compute stream from now on. Nests.
  autograd::unit_buffers acquire(int unit, autograd::pass p) {
    return with([&](auto& store) { return store.acquire(unit, p); });
  }
  /// Matches an acquire; later work may not use the buffers.
  void release(int unit, autograd::pass p) noexcept {
    with([&](auto& store) { store.release(unit, p); });
  }
  /// The micro-batch's gradient of the unit is completely queued.
  void reduce(int unit) {
    with([&](auto& store) { store.reduce(unit); });
  }
  /// Call before each micro-batch: is it the step's last?
  void set_last_micro_batch(bool last) {
    with([&](auto& store) { store.set_last_micro_batch(last); });
  }
  /// The unit's weights where they live, or the rank's shard of them.
  [[nodiscard]] T* weights(int unit) {
    return with([&](auto& store) { return store.weights(unit); });
  }
  /// The stream whose work reads the unit's weights first.
  [[nodiscard]] typename D::stream& reader(int unit) {
    return with([&](auto& store) -> typename D::stream& { return store.reader(unit); });
  }
  /// Call before weights are written from outside a step, on all ranks: waits until nothing reads them.
  void expect_writes(int unit) {
    with([&](auto& store) { store.expect_writes(unit); });
  }
  /// The final gradient of the last step, or the rank's shard of it. Null for a frozen unit, and for an
  /// offloaded gradient whose buffer is taken by another.
  [[nodiscard]] unit_gradient gradient(int unit) {
    return with([&](auto& store) { return store.gradient(unit); });
  }
  /// As sharded_store::exchange. \throws error(internal) without a group
  void exchange(void const* from, void* to, std::size_t bytes) {
    expect(of_rank_.has_value(), exit_code::internal, "an engine without ranks exchanges rows");
    of_rank_->exchange(from, to, bytes);
  }
  /// Call after a step's last backward: the sink has all gradients then.
  void settle() {
    with([](auto& store) { store.settle(); });
  }
  /// The step's updates are queued on the compute stream.
  void weights_changed() {
    with([](auto& store) { store.weights_changed(); });
  }

private:
  template <class Use>
  decltype(auto) with(Use&& use) {
    return of_rank_ ? use(*of_rank_) : use(*alone_);
  }

  std::optional<alone> alone_;
  std::optional<of_rank> of_rank_;
};

/// The policy: shards if the engine has a group of kind `Comm`, else as zero::offloaded. A rank's gradients
/// can be offloaded in the immediate mode and without accumulation.
template <class Comm>
struct offloaded_or_sharded {
  using policy_category = category::sharding;  ///< see core/policy.hpp
  static constexpr bool offloads = true;       ///< weights and gradients may be offloaded
  static constexpr bool alone = true;          ///< an engine needs no group
  static constexpr bool shards = true;         ///< an engine can be a rank
  /// The store on device D, in element type T.
  template <device_policy D, element T>
  using store = offloaded_or_sharded_store<D, T, typename Comm::template communicator<D>>;
};
static_assert(sharding_policy<offloaded_or_sharded<comm::single>, described_device, bfloat16>);

}  // namespace superoffload::zero
