// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/policy.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/core/profile.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/offload/none.hpp>
#include <superoffload/train/engine/engine_core.hpp>
#include <superoffload/train/engine/engine_options.hpp>
#include <superoffload/train/engine/lay_out.hpp>
#include <superoffload/train/engine/recompute.hpp>
#include <superoffload/zero/resident.hpp>

#include <utility>

namespace superoffload::train {

namespace detail {
/// The members of an engine besides its core, constructed before it and destroyed after it.
template <class Architecture, class Profile>
struct beside_core {
  [[no_unique_address]] typename Profile::session session{};
  Architecture architecture;
};
}  // namespace detail

/// A core with the model that it trains. The recompute and profile policies act here, so they do not multiply
/// the core's instantiations.
template <class Architecture, class Core, class Recompute, class Profile>
class basic_engine : private detail::beside_core<Architecture, Profile>, public Core {
  using beside_core = detail::beside_core<Architecture, Profile>;

public:
  using typename Core::device_type;
  using typename Core::group_type;
  using architecture_type = Architecture;  ///< the model's class

  /// Lays the model out and computes its memory; allocates nothing on the device yet. `device` must outlive
  /// this.
  basic_engine(device_type& device, model::config const& config, engine_options options)
    requires(Core::alone)
      : basic_engine{device, nullptr, config, std::move(options)} {}
  /// The same for a rank of `group`, which must outlive this.
  basic_engine(device_type& device, group_type& group, model::config const& config, engine_options options)
    requires(Core::shards)
      : basic_engine{device, &group, config, std::move(options)} {}
  /// To say what is missing.
  basic_engine(device_type& device, model::config const& config, engine_options options)
    requires(!Core::alone)
      : basic_engine{device, nullptr, config, std::move(options)} {
    static_assert(Core::alone, "an engine with zero::sharded is a rank: pass its group after the device");
  }
  /// Either of these: `group` is null for an engine without ranks.
  basic_engine(device_type& device, group_type* group, model::config const& config, engine_options options)
      : beside_core{.architecture = lay_out<Architecture>(config, options.trainable, options.decays)},
        Core{device, group, beside_core::architecture, settled(std::move(options))} {}

  /// The model with its layouts, which lives in the engine.
  [[nodiscard]] Architecture const& model() const noexcept { return beside_core::architecture; }

private:
  static engine_options settled(engine_options options) {
    options.recompute = Recompute::of(options.recompute);
    return options;
  }
};

namespace detail {
template <class... Policies>
struct engine_of {
  static_assert((policy<Policies> && ...),
                "every argument of train::engine is a policy: a type with policy_category");
  static_assert(count_of<category::architecture, Policies...> == 1,
                "train::engine needs exactly one model architecture");
  static_assert(count_of<category::device, Policies...> <= 1, "train::engine takes at most one device");
  static_assert(count_of<category::precision, Policies...> <= 1, "train::engine takes at most one precision");
  static_assert(count_of<category::sharding, Policies...> <= 1,
                "train::engine takes at most one sharding policy");
  static_assert(count_of<category::offload, Policies...> <= 1,
                "train::engine takes at most one offload policy");
  static_assert(count_of<category::recompute, Policies...> <= 1,
                "train::engine takes at most one recompute policy");
  static_assert(count_of<category::profile, Policies...> <= 1,
                "train::engine takes at most one profile policy");
  using architecture = pick<category::architecture, void, Policies...>;
  static_assert(count_of<category::architecture, Policies...> != 1 || model::architecture<architecture>,
                "a model architecture must have what model::architecture asks for (model/architecture.hpp)");
  using recompute_type = pick<category::recompute, recompute::configured, Policies...>;
  using profile_type = pick<category::profile, profile::none, Policies...>;
  static_assert(
      recompute::recompute_policy<recompute_type>,
      "a recompute policy must have what recompute::recompute_policy asks for (train/engine/recompute.hpp)");
  static_assert(profile::profile_policy<profile_type>,
                "a profile policy must have what profile::profile_policy asks for (core/profile.hpp)");
  using core = engine_core<pick<category::device, cpu::device, Policies...>,
                           pick<category::precision, precision::fp32, Policies...>,
                           pick<category::sharding, zero::resident, Policies...>,
                           pick<category::offload, offload::none, Policies...>>;
  using type = basic_engine<architecture, core, recompute_type, profile_type>;
};
}  // namespace detail

/// The engine of the given policies, in any order: the same policies name the same type. Defaults:
/// cpu::device, precision::fp32, zero::resident, offload::none, recompute::configured, profile::none.
template <class... Policies>
using engine = typename detail::engine_of<Policies...>::type;

}  // namespace superoffload::train
