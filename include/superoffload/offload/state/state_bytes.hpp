// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/state_format.hpp>
#include <superoffload/kernel/stored_state.hpp>
#include <superoffload/offload/configuration.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace superoffload::offload {

/// The form of optimizer state. Its functions give the bytes of `count` elements; a bucket's are allocated
/// together.
struct state_layout {
  state_format format = state_format::float32;
  std::size_t element_bytes = 2;  ///< of working weights: 2 or 4

  /// Beside working weights: m, v, and the part of the master that the weight does not hold.
  [[nodiscard]] constexpr std::size_t split(std::int64_t count) const {
    auto const n = static_cast<std::size_t>(count);
    auto const low = element_bytes != 2 ? 0 : format == state_format::int8 ? n : 2 * n;
    return aligned(low + moments(n));
  }
  /// Whole state: master, m and v.
  [[nodiscard]] constexpr std::size_t whole(std::int64_t count) const {
    auto const n = static_cast<std::size_t>(count);
    bool const is_short = format == state_format::int8 && element_bytes == 2;
    return aligned((is_short ? 3 : sizeof(float)) * n + moments(n));
  }
  /// Of device memory that an update on the device reads and writes: weight and state are read and written,
  /// the gradient is read.
  [[nodiscard]] constexpr std::size_t update_traffic(std::int64_t count) const {
    return 2 * split(count) + 3 * weights(count);
  }
  /// Of device-updated elements that go to the device and come back: their state, and their weights if these
  /// live on the host.
  [[nodiscard]] constexpr std::size_t device_updated(std::int64_t count, bool weights_on_host) const {
    return split(count) + (weights_on_host ? weights(count) : 0);
  }
  /// Of working weights.
  [[nodiscard]] constexpr std::size_t weights(std::int64_t count) const {
    return static_cast<std::size_t>(count) * element_bytes;
  }

private:
  [[nodiscard]] constexpr std::size_t moments(std::size_t n) const {
    constexpr auto block = static_cast<std::size_t>(kernel::state_block);
    switch (format) {
      case state_format::bf16:
        return 2 * sizeof(bfloat16) * n;
      case state_format::int8:
        return 2 * (n + (n + block - 1) / block);
      case state_format::float32:
        break;
    }
    return 2 * sizeof(float) * n;
  }
  /// Exponents would shift what follows them.
  [[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) const {
    return format == state_format::int8 ? (bytes + 255) / 256 * 256 : bytes;
  }
};

/// Bytes of optimizer state and of single buffers in a configuration.
struct state_bytes {
  std::array<std::int64_t, 3> elements{};  ///< in each tier
  std::size_t resident = 0;                ///< state on the device
  std::size_t whole = 0;                   ///< state on the host, with weights on the device
  std::size_t in_place = 0;                ///< state on the host, with weights on the host
  std::size_t device_updated = 0;          ///< state on the host
  std::size_t staging_buffer = 0;          ///< one staging buffer: for the largest device-updated bucket
  std::size_t pinned_buffer = 0;  ///< one pinned buffer: for the weights of CPU Adam's largest bucket
};

state_bytes bytes_of(placement const& buckets, zero::offloaded_units const& offloaded,
                     state_layout const& layout);
state_bytes bytes_of(configuration const& a, std::size_t element_bytes);

}  // namespace superoffload::offload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/offload/state/impl/state_bytes_inl.hpp>
#endif
