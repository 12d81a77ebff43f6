// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/state_format.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace superoffload::offload {

/// The value of --offload.
enum class mode {
  automatic,  ///< the planner decides
  none,       ///< all optimizer state stays on the device
  zero,       ///< CPU Adam after the backward, without speculative updates (ZeRO-Offload)
  super,      ///< CPU Adam beside the GPU, with speculative updates that change no result
};

enum class choice { automatic, on, off };

/// The user's settings for offloading. The planner decides what is absent.
struct settings {
  mode how = mode::automatic;                  ///< what offloading may do
  state_format state = state_format::float32;  ///< how optimizer state is stored, wherever it is
  std::optional<double> ratio{};               ///< share of parameters whose state is off the device, [0, 1]
  std::optional<double> device_updated_share{};  ///< of those, the share that the device updates, not the CPU
  /// Of blocks; automatic: where a plan needs it, or is faster with it.
  choice offload_weights = choice::automatic;
  /// Speculative updates; automatic: while most of them are confirmed.
  choice speculation = choice::automatic;
  double cpuadam_cores_perc = 0.9;                     ///< of this rank's cores, (0, 1]
  std::int64_t bucket_bytes = std::int64_t{32} << 20;  ///< of a bucket's working weights, at most
  /// Of a rank: zero::store_options::weight_ranks; none: all, or those of each host where that is faster.
  std::optional<int> weight_ranks{};
  bool sums_in_copies = false;                 ///< with weight_ranks: as in zero::store_options
  std::optional<std::size_t> device_memory{};  ///< bytes that a plan may take at most; none: what is there
  std::optional<std::size_t> host_memory{};    ///< the same of each rank's share of the host
  std::string resource_group{};                ///< resctrl group for the threads of CPU Adam; empty: none
  std::filesystem::path hardware{};  ///< describes a machine instead of measuring this one; empty: none
  std::filesystem::path plan{};      ///< where the plan is written as JSON; empty: nowhere
  std::filesystem::path timeline{};  ///< where the planned step is drawn as SVG; empty: nowhere
};

/// \throws error(bad_input) that names the flag, for a value out of range or one that contradicts another.
void check(settings const& s);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/impl/settings_inl.hpp>
#endif
