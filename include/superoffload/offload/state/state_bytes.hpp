// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/configuration.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace superoffload::offload {

/// Bytes of a parameter's whole optimizer state: master, m and v.
inline constexpr std::size_t whole_state_bytes = 3 * sizeof(float);
/// The same beside a working weight of `element_bytes`: m, v, and the part of the master that the weight does
/// not hold.
constexpr std::size_t split_state_bytes(std::size_t element_bytes) {
  return 2 * sizeof(float) + (element_bytes == 2 ? 2 : 0);
}
/// Bytes of device memory that a parameter's update on the device reads and writes: weight and state are read
/// and written, the gradient is read.
constexpr std::size_t update_traffic_bytes(std::size_t element_bytes) {
  return 2 * split_state_bytes(element_bytes) + 3 * element_bytes;
}
/// Bytes of a device-updated parameter that go to the device and come back: its state, and its weight if that
/// lives on the host.
constexpr std::size_t device_updated_bytes(std::size_t element_bytes, bool weight_on_host) {
  return split_state_bytes(element_bytes) + (weight_on_host ? element_bytes : 0);
}

/// Bytes of optimizer state and of single buffers in a configuration.
struct state_bytes {
  std::size_t resident = 0;        ///< state on the device
  std::size_t whole = 0;           ///< state on the host, with weights on the device
  std::size_t in_place = 0;        ///< state on the host, with weights on the host
  std::size_t device_updated = 0;  ///< state on the host
  std::size_t staging_buffer = 0;  ///< one staging buffer: for the largest device-updated bucket
  std::size_t pinned_buffer = 0;   ///< one pinned buffer: for the weights of CPU Adam's largest bucket
};

inline state_bytes bytes_of(placement const& buckets, zero::offloaded_units const& offloaded,
                            std::size_t element_bytes) {
  state_bytes all;
  auto const split = split_state_bytes(element_bytes);
  for (auto const& b : buckets) {
    auto const n = static_cast<std::size_t>(b.count);
    bool const weight_on_host = offloaded.weights_of(b.unit);
    switch (b.where) {
      case tier::resident:
        all.resident += n * split;
        break;
      case tier::host:
        (weight_on_host ? all.in_place : all.whole) += n * (weight_on_host ? split : whole_state_bytes);
        all.pinned_buffer = std::max(all.pinned_buffer, n * element_bytes);
        break;
      case tier::device_updated:
        all.device_updated += n * split;
        all.staging_buffer =
            std::max(all.staging_buffer, n * device_updated_bytes(element_bytes, weight_on_host));
        break;
    }
  }
  return all;
}
inline state_bytes bytes_of(configuration const& a, std::size_t element_bytes) {
  return bytes_of(a.buckets, a.offloaded, element_bytes);
}

}  // namespace superoffload::offload
