// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/configuration.hpp>

#include <cstdint>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE void check(configuration const& a) {
  std::int64_t on_host = 0;
  bool offloads_gradients = false;
  for (auto const& b : a.buckets) {
    on_host += b.where == tier::host ? 1 : 0;
    offloads_gradients = offloads_gradients || a.offloaded.gradient_of(b.unit);
    expect(b.where != tier::resident || !a.weights_offloaded(b), exit_code::internal, "the weights of unit ",
           b.unit,
           " live in host memory, but their state is resident: expected it on the host, or updated by the "
           "device");
    expect(b.where == tier::host || !a.offloaded.gradient_of(b.unit) || a.immediate, exit_code::internal,
           "the gradient of unit ", b.unit,
           " leaves the device before the check, but its state is updated there: expected it on the host");
  }
  bool const holds = offloads_gradients && !a.immediate;
  expect(on_host == 0 || a.pinned_buffers >= (holds ? on_host + 2 : 2), exit_code::internal,
         "a configuration has ", a.pinned_buffers, " pinned buffers, expected at least ",
         holds ? on_host + 2 : 2, holds ? ": they hold gradients until the check" : "");
  expect(a.largest(tier::device_updated) == 0 || a.staging_buffers >= 1, exit_code::internal,
         "a configuration has device-updated buckets and no staging buffer: expected at least 1");
}

}  // namespace superoffload::offload
