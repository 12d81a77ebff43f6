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

/// Gives the working weights of a unit, [elements] T: in device memory, or in host memory where they flow.
template <element T>
using unit_weights = std::function<T*(int unit)>;

/// The optimizer's state as an engine on D in T makes and uses it: master, m and v of every unit that trains.
/// Calls come from one thread, and what they queue goes to the compute stream unless it says otherwise.
///
/// 1. `bytes(units, configuration)` tells the memory that one takes; the constructor takes device, compute
///    stream, units, configuration, unit_weights and a recorder or null. What it is given by reference
///    outlives it. Moments start at zero.
/// 2. A step is announce(record), if its learning rate is known; ready(unit, gradient) for each unit whose
///    gradient is final, in any order; judge(ranks, gather), which waits for all of them, and adds up those
///    of all ranks; then update(record) or skip(), which changes nothing.
/// 3. await(unit, stream): work queued on `stream` from now on may use the unit's weights; returned(unit):
///    would await return at once? await_gradient(unit, stream): such work may overwrite its last gradient.
/// 4. read and write elements [first, first + size) of what is kept of a unit, between steps; with the master
///    its working weight is written, rounded by of_master.
/// 5. counts() and hit rate() tell how buckets off the device were served, nothing and 1 where there is no
///    such; notes() are lines for people, such as what the host refused.
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

/// Where the optimizer's state lives, and who updates it. `arranges`: does a configuration say so, and may
/// weights and gradients therefore flow?
template <class P, class D, class T>
concept offload_policy = policy_of<P, category::offload> && requires {
  { P::configures } -> std::convertible_to<bool>;
  typename P::template state<D, T>;
  requires optimizer_state<typename P::template state<D, T>, D, T>;
};

}  // namespace superoffload::offload
