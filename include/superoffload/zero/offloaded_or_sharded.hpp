// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/core/described_device.hpp>
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
  using alone = offloaded_store<D, T>;
  using of_rank = sharded_store<D, T, C>;
  using group_type = C;

  static store_bytes bytes(std::vector<autograd::unit_layout> const& units, store_options const& o,
                           C const* group) {
    return group == nullptr ? alone::bytes(units, o, nullptr) : of_rank::bytes(units, o, group);
  }
  offloaded_or_sharded_store(D& device, typename D::stream& stream,
                             std::vector<autograd::unit_layout> const& units, store_options const& o,
                             C* group, gradient_sink<typename D::stream> sink, recorder<D>* times = nullptr) {
    if (group == nullptr) {
      alone_.emplace(device, stream, units, o, nullptr, sink, times);
    } else {
      of_rank_.emplace(device, stream, units, o, group, sink, times);
    }
  }

  void prefetch(int unit, autograd::pass p) noexcept {
    with([&](auto& store) { store.prefetch(unit, p); });
  }
  autograd::unit_buffers acquire(int unit, autograd::pass p) {
    return with([&](auto& store) { return store.acquire(unit, p); });
  }
  void release(int unit, autograd::pass p) noexcept {
    with([&](auto& store) { store.release(unit, p); });
  }
  void reduce(int unit) {
    with([&](auto& store) { store.reduce(unit); });
  }
  void set_last_micro_batch(bool last) {
    with([&](auto& store) { store.set_last_micro_batch(last); });
  }
  [[nodiscard]] T* weights(int unit) {
    return with([&](auto& store) { return store.weights(unit); });
  }
  [[nodiscard]] typename D::stream& reader(int unit) {
    return with([&](auto& store) -> typename D::stream& { return store.reader(unit); });
  }
  void expect_writes(int unit) {
    with([&](auto& store) { store.expect_writes(unit); });
  }
  [[nodiscard]] unit_gradient gradient(int unit) {
    return with([&](auto& store) { return store.gradient(unit); });
  }
  void settle() {
    with([](auto& store) { store.settle(); });
  }
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
  using policy_category = category::sharding;
  static constexpr bool offloads = true;
  static constexpr bool alone = true;
  static constexpr bool shards = true;
  template <device_policy D, element T>
  using store = offloaded_or_sharded_store<D, T, typename Comm::template communicator<D>>;
};
static_assert(sharding_policy<offloaded_or_sharded<comm::single>, described_device, bfloat16>);

}  // namespace superoffload::zero
