// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Arrays of state that a kernel writes and does not read.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/kernels/streaming.hpp>
#include <superoffload/kernel/stored_state.hpp>

#include <cstddef>
#include <cstdint>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Elements that are staged at once: their state stays in the first cache.
inline constexpr int64_t staged_elements = 1024;

/// Numbers that are written here, and then go to their array around the caches.
template <class Array>
struct staged;

template <class U>
struct staged<U*> {
  alignas(64) U values[staged_elements];

  SUPEROFFLOAD_ALWAYS_INLINE U* data() { return values; }
  void leave(U* to, int64_t count) const {
    copy_past_caches(to, values, static_cast<std::size_t>(count) * sizeof(U));
  }
};
template <>
struct staged<kernel::block_codes> {
  staged<std::uint8_t*> codes, exponents;

  SUPEROFFLOAD_ALWAYS_INLINE kernel::block_codes data() { return {codes.data(), exponents.data()}; }
  void leave(kernel::block_codes to, int64_t count) const {
    codes.leave(to.codes, count);
    exponents.leave(to.exponents, count / kernel::state_block);
  }
};
template <>
struct staged<kernel::short_masters> {
  staged<bfloat16*> high;
  staged<std::uint8_t*> low;

  SUPEROFFLOAD_ALWAYS_INLINE kernel::short_masters data() { return {high.data(), low.data()}; }
  void leave(kernel::short_masters to, int64_t count) const {
    high.leave(to.high, count);
    low.leave(to.low, count);
  }
};

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
