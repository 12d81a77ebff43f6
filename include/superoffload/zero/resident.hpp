// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/described_device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/zero/gradient_layout.hpp>
#include <superoffload/zero/sharding_policy.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cstddef>
#include <vector>

namespace superoffload::zero {

/// The store with all weights and gradients in device memory.
///
/// Gradients are T, or wide<T> if the unit asks for it or a step has several micro-batches. Wide sums are
/// rounded once, by their reader.
template <device_policy D, element T>
class resident_store {
public:
  using group_type = comm::single_communicator<D>;  ///< of a null pointer: there are no ranks

  /// The device memory of a store with these options. \throws error(internal) with a group, or if anything is
  /// offloaded.
  static store_bytes bytes(std::vector<autograd::unit_layout> const& units, store_options const& o,
                           group_type const* group) {
    expect(group == nullptr && !o.offloaded.any_weights() && !o.offloaded.any_gradient(), exit_code::internal,
           "zero::resident keeps everything on one device: expected no group, and nothing offloaded");
    store_bytes total;
    for (auto const& u : units) {
      auto const n = static_cast<std::size_t>(u.elements());
      total.weights += n * sizeof(T);
      if (u.trainable()) {
        total.gradients += gradient_bytes<T>(u, o.accumulates);
      }
    }
    return total;
  }

  /// Zeroes all memory and waits for that. `group` must be null.
  resident_store(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units,
                 store_options const& o, group_type* group, gradient_sink<typename D::stream> sink,
                 recorder<D>* = nullptr)
      : stream_{&stream}, sink_{sink} {
    auto const total = bytes(units, o, group);
    weights_ = buffer<D>{device, total.weights};
    gradients_ = buffer<D>{device, total.gradients};
    drain_at_end const drained{stream};
    stream.fill_zero(weights_.data(), total.weights);
    stream.fill_zero(gradients_.data(), total.gradients);  // padding and frozen tensors stay zero
    auto* weight = weights_.template as<std::byte>();
    auto* gradient = gradients_.template as<std::byte>();
    for (auto const& u : units) {
      auto const n = static_cast<std::size_t>(u.elements());
      entry e{.weights = reinterpret_cast<T*>(weight), .gradient = {}, .frozen = unwritten(u, false)};
      weight += n * sizeof(T);
      if (u.trainable()) {
        e.gradient = {gradient, keeps_wide<T>(u, o.accumulates)};
        gradient += gradient_bytes<T>(u, o.accumulates);
      }
      entries_.push_back(std::move(e));
    }
  }

  void prefetch(int, autograd::pass) noexcept {}  ///< nothing to do
  /// The unit's weights and, but for a plain forward, its gradient; the same addresses each time.
  autograd::unit_buffers acquire(int unit, autograd::pass p) {
    auto const& e = at(unit);
    if (p == autograd::pass::forward) {
      return {.weights = e.weights};
    }
    return {e.weights, e.gradient.data, e.gradient.is_wide};
  }
  void release(int, autograd::pass) noexcept {}  ///< nothing to do

  /// Hands the gradient of the step's last micro-batch to the sink.
  void reduce(int unit) {
    auto const& e = at(unit);
    if (e.gradient.data == nullptr || !last_) {
      return;
    }
    clear<T>(*stream_, e.gradient, e.frozen);
    sink_.ready(sink_.self, unit, e.gradient);
  }

  /// Is the next micro-batch the step's last, after which gradients are final?
  void set_last_micro_batch(bool last) { last_ = last; }
  void settle() noexcept {}           ///< nothing to do: reduce() hands over every gradient
  void weights_changed() noexcept {}  ///< nothing to do: there are no copies

  /// The weights, [elements of the unit], in device memory.
  [[nodiscard]] T* weights(int unit) const { return at(unit).weights; }
  /// The stream whose work reads a unit's weights first.
  [[nodiscard]] typename D::stream& reader(int) noexcept { return *stream_; }
  /// Call before they are written from outside a step.
  void expect_writes(int) noexcept {}
  /// The final gradient of the last step, zero in frozen tensors; null for a frozen unit.
  [[nodiscard]] unit_gradient gradient(int unit) const { return at(unit).gradient; }

private:
  struct entry {
    T* weights = nullptr;
    unit_gradient gradient;
    std::vector<unit_range> frozen;
  };

  [[nodiscard]] entry const& at(int unit) const { return entries_[static_cast<std::size_t>(unit)]; }

  typename D::stream* stream_;
  gradient_sink<typename D::stream> sink_;
  buffer<D> weights_, gradients_;
  std::vector<entry> entries_;
  bool last_ = true;
};

/// The policy: nothing is sharded.
struct resident {
  using policy_category = category::sharding;  ///< see core/policy.hpp
  static constexpr bool offloads = false;      ///< all weights and gradients stay on the device
  static constexpr bool alone = true;          ///< an engine needs no group
  static constexpr bool shards = false;        ///< an engine cannot be a rank
  template <device_policy D, element T>
  using store = resident_store<D, T>;  ///< the store on device D, in element type T
};
static_assert(sharding_policy<resident, described_device, bfloat16>);

}  // namespace superoffload::zero
