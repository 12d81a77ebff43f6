// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/described_device.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/offload_policy.hpp>
#include <superoffload/offload/placement.hpp>
#include <superoffload/offload/scheduling/worker_counts.hpp>
#include <superoffload/offload/state/gradient_norm.hpp>
#include <superoffload/offload/state/resident.hpp>
#include <superoffload/offload/state/step_record.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace superoffload::offload {

/// All optimizer state is in device memory. The device updates it after the gradient check, in one stream and
/// without overlap. Every other state must give the same bits as this simple path.
template <device_policy D, element T>
class device_state {
public:
  /// Bytes of device memory and of host memory.
  static memory_bytes bytes(std::vector<autograd::unit_layout> const& units, configuration const& a) {
    return {.device = resident_state<D, T>::bytes(whole(units), a.format) + gradient_norm<D, T>::bytes(units),
            .host = gradient_norm<D, T>::bytes(units)};
  }

  /// `weights(unit)` gives the working weights that the state belongs to, [elements] T in device memory.
  template <class Weights>
  device_state(D& device, typename D::stream& stream, std::vector<autograd::unit_layout> const& units,
               configuration const& a, Weights&& weights, recorder<D>* times = nullptr)
      : buckets_{whole(units)},
        norm_{device, stream, units},
        resident_{device, stream, units, buckets_, a.format, weights, times} {}

  /// The record of the coming step, if it is not clipped.
  void announce(step_record const&) noexcept {}
  /// The unit's gradient is final.
  void ready(int unit, zero::unit_gradient gradient) { norm_.add(unit, gradient); }
  /// Waits for every gradient: gradient_norm::check_gradient.
  [[nodiscard]] gradient_check check_gradient(int ranks = 1, gather_sums const& gather = {}) {
    return norm_.check_gradient(ranks, gather);
  }
  /// Queues the update of everything.
  void update(step_record const& record) {
    for (auto const& b : buckets_) { resident_.update(b.unit, record, norm_.gradient(b.unit)); }
  }
  /// The step changes nothing.
  void skip() noexcept {}
  /// The working weights of a unit may be used by work queued from now on.
  void await(int, typename D::stream&) noexcept {}
  /// The update is queued on the compute stream already.
  [[nodiscard]] bool returned(int) const noexcept { return true; }
  /// The last gradient of a unit may be overwritten by work queued on `stream` from now on.
  void await_gradient(int, typename D::stream&) noexcept {}
  /// No bucket is off the device.
  [[nodiscard]] worker_counts counts() const noexcept { return {}; }
  /// There are no speculative updates.
  [[nodiscard]] double hit_rate() const noexcept { return 1.0; }
  /// Always empty.
  [[nodiscard]] std::vector<std::string> notes() const { return {}; }

  /// Reads elements [first, first + size) of a trainable unit's state. Waits for the stream.
  void read(int unit, state_part part, std::int64_t first, std::span<float> to) {
    resident_.read(index_of(unit), part, first, to);
  }
  /// Writes them. A written master also sets its working weight.
  void write(int unit, state_part part, std::int64_t first, std::span<float const> from) {
    resident_.write(index_of(unit), part, first, from);
  }

private:
  static placement whole(std::vector<autograd::unit_layout> const& units) {
    return buckets_of(units, std::numeric_limits<std::int64_t>::max());
  }
  [[nodiscard]] std::size_t index_of(int unit) const {
    std::size_t index = 0;
    while (buckets_[index].unit != unit) { ++index; }
    return index;
  }

  placement buckets_;
  gradient_norm<D, T> norm_;
  resident_state<D, T> resident_;
};

/// The policy: nothing is offloaded.
struct none {
  using policy_category = category::offload;  ///< makes it an offload_policy
  static constexpr bool configures = false;   ///< of a configuration only the format counts
  template <device_policy D, element T>
  using state = device_state<D, T>;  ///< an optimizer_state
};
static_assert(offload_policy<none, described_device, bfloat16>);

}  // namespace superoffload::offload
