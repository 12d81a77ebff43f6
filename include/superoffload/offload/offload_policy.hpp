// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/policy.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/placement.hpp>
#include <superoffload/offload/scheduling/worker_counts.hpp>
#include <superoffload/offload/state/gradient_norm.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace superoffload::offload {

/// Gives the working weights of a unit, [elements] T: in device memory, or in host memory if they are
/// offloaded.
template <element T>
using unit_weights = std::function<T*(int unit)>;

/// The optimizer state as an engine on device D in element type T constructs and uses it: master, m and v of
/// every trainable unit. All calls come from one thread. They queue work on the compute stream, unless
/// another stream is given.
///
/// 1. `bytes(units, configuration)` is the memory that a state takes. The constructor takes device, compute
///    stream, units, configuration, unit_weights and a recorder or null. What it takes by reference must
///    outlive it. Moments start at zero.
/// 2. A step is announce(record), if its learning rate is known; ready(unit, gradient) for each unit whose
///    gradient is final, in any order; check_gradient(ranks, gather), which waits for all gradients and sums
///    over all ranks; then update(record), or skip(), which changes nothing.
/// 3. After await(unit, stream), work queued on `stream` may use the unit's weights. returned(unit) tells
///    whether await would return at once. After await_gradient(unit, stream), such work may overwrite the
///    unit's last gradient.
/// 4. read and write take elements [first, first + size) of a unit's state, between steps. A written master
///    also sets its working weight, rounded by of_master.
/// 5. counts() and hit_rate() tell how the buckets off the device were updated; without such buckets they are
///    zero and 1. notes() are lines for the user, such as what the host refused.
template <class S, class D, class T>
concept optimizer_state =
    device_policy<D> &&
    std::constructible_from<S, D&, typename D::stream&, std::vector<autograd::unit_layout> const&,
                            configuration const&, unit_weights<T> const&, recorder<D>*> &&
    requires(S& s, S const& same, std::vector<autograd::unit_layout> const& units, configuration const& a,
             step_record const& record, int unit, zero::unit_gradient gradient, int ranks,
             gather_sums const& gather, typename D::stream& stream, state_part part, std::int64_t first,
             std::span<float> to, std::span<float const> from) {
      { S::bytes(units, a) } -> std::same_as<memory_bytes>;
      s.announce(record);
      s.ready(unit, gradient);
      { s.check_gradient(ranks, gather) } -> std::same_as<gradient_check>;
      s.update(record);
      s.skip();
      s.await(unit, stream);
      { same.returned(unit) } -> std::same_as<bool>;
      s.await_gradient(unit, stream);
      s.read(unit, part, first, to);
      s.write(unit, part, first, from);
      { same.counts() } -> std::same_as<worker_counts>;
      { same.hit_rate() } -> std::convertible_to<double>;
      { same.notes() } -> std::same_as<std::vector<std::string>>;
    };

/// Where the optimizer state lives, and which processor updates it. `configures`: does a configuration decide
/// that? Only then can weights and gradients be offloaded.
template <class P, class D, class T>
concept offload_policy = policy_of<P, category::offload> && requires {
  { P::configures } -> std::convertible_to<bool>;
  typename P::template state<D, T>;
  requires optimizer_state<typename P::template state<D, T>, D, T>;
};

}  // namespace superoffload::offload
