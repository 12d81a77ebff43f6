// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
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
inline void check(settings const& s) {
  auto const share = [&](std::optional<double> const& value, char const* flag) {
    expect(!value || (*value >= 0.0 && *value <= 1.0), exit_code::bad_input, flag, " is ",
           value.value_or(0.0), ", expected 0 to 1");
    expect(!value || *value == 0.0 || s.how != mode::none, exit_code::bad_input, flag, " is ",
           value.value_or(0.0), ", but --offload is none: expected 0, or to offload");
  };
  share(s.ratio, "--ratio");
  share(s.device_updated_share, "--device_updated_share");
  expect(
      s.offload_weights != choice::on || s.how != mode::none, exit_code::bad_input,
      "--offload_weights is on, but --offload is none: expected --offload auto, super or zero, since weights "
      "on the host are updated where they are");
  expect(s.speculation != choice::on || s.how != mode::zero, exit_code::bad_input,
         "--speculation is on, but --offload is zero, which waits for the check: expected --offload auto or "
         "super");
  expect(s.cpuadam_cores_perc > 0.0 && s.cpuadam_cores_perc <= 1.0, exit_code::bad_input,
         "--cpuadam_cores_perc is ", s.cpuadam_cores_perc, ", expected above 0 and at most 1");
  auto const budget = [](std::optional<std::size_t> bytes, char const* flag) {
    expect(!bytes || *bytes > 0, exit_code::bad_input, flag, " is 0, expected more GiB");
  };
  budget(s.device_memory, "--device_memory");
  budget(s.host_memory, "--host_memory");
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  expect(s.bucket_bytes >= mib && s.bucket_bytes <= 4096 * mib, exit_code::bad_input, "--bucket_mib is ",
         s.bucket_bytes / mib, ", expected 1 to 4096");
}

}  // namespace superoffload::offload
