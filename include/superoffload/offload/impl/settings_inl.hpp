// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/settings.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE void check(settings const& s) {
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
