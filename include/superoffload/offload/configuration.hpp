// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/core/state_format.hpp>
#include <superoffload/offload/placement.hpp>
#include <superoffload/zero/offloaded_units.hpp>
#include <superoffload/zero/shard.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace superoffload::offload {

/// What is offloaded, and how. It is decided before anything is allocated.
struct configuration {
  placement buckets;                            ///< of every trainable unit, with their tiers
  state_format format = state_format::float32;  ///< of the optimizer state, in every tier
  /// Units whose weights live in host memory, and units whose gradients leave the device as they become
  /// final. The optimizer state of the former is not resident. That of the latter is on the host, whose
  /// pinned buffers hold all gradients until the check, unless the configuration is immediate.
  zero::offloaded_units offloaded{};
  /// What blocks keep from forward to backward, and how much of it leaves the device. Read by engines with
  /// recompute::choice::automatic or offload.
  autograd::activation_offloading activations{};
  /// Of a rank: how many units are gathered at once. The engine says whether embeddings are tied.
  zero::gather_buffers buffers{};
  /// @{
  /// Of a rank: as in zero::store_options.
  int weight_ranks = 0;
  bool sums_in_copies = false;
  /// @}
  /// Pinned buffers of one bucket each. They hold gradients that are copied or kept, and weights that are
  /// copied.
  int pinned_buffers = 4;
  /// Device buffers, each for the state of one device-updated bucket.
  int staging_buffers = 2;
  int workers = 1;             ///< threads of CPU Adam, each pinned to its own processor
  std::string resource_group;  ///< of the host's cache and bandwidth control, for these threads; empty: none
  bool speculates = true;      ///< make new weights before the gradient check
  /// Is whole state on the host kept twice? A speculative update then writes the new state, too, beside the
  /// current one, which the check replaces by it or not. So each step takes one pass over the state, and not
  /// two.
  bool double_buffered = false;
  bool adapts = true;          ///< stop doing so while most steps are clipped
  bool immediate = false;      ///< update without a check; a step that is not finite ends the run
  bool waits_for_all = false;  ///< the next step begins when every weight is back

  /// Speculative updates stop while the hit rate is below this.
  [[nodiscard]] double least_hit_rate() const { return adapts ? 0.5 : 0.0; }
  /// Does a bucket's working weight live in host memory?
  [[nodiscard]] bool weights_offloaded(bucket const& b) const { return offloaded.weights_of(b.unit); }

  /// The buckets in a tier.
  [[nodiscard]] int count(tier where) const {
    return static_cast<int>(
        std::count_if(buckets.begin(), buckets.end(), [where](bucket const& b) { return b.where == where; }));
  }
  /// Is the state of any bucket not resident?
  [[nodiscard]] bool any_off_the_device() const {
    return std::any_of(buckets.begin(), buckets.end(),
                       [](bucket const& b) { return b.where != tier::resident; });
  }
  /// Elements of the largest bucket in a tier; 0: there is none.
  [[nodiscard]] std::int64_t largest(tier where) const {
    std::int64_t most = 0;
    for (auto const& b : buckets) { most = b.where == where ? std::max(most, b.count) : most; }
    return most;
  }
};

/// \throws error(internal) for a configuration that would deadlock or contradicts itself.
void check(configuration const& a);

/// Bytes of each kind of memory.
struct memory_bytes {
  std::size_t device = 0;  ///< of the device; the CPU takes them from the host
  std::size_t host = 0;    ///< of the host, pinned or not

  /// Adds each kind by itself.
  friend memory_bytes operator+(memory_bytes a, memory_bytes b) {
    return {a.device + b.device, a.host + b.host};
  }
};

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/impl/configuration_inl.hpp>
#endif
