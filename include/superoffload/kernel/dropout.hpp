// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// Mixes the bits of a number (the finalizer of splitmix64, Steele et al., OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31);
}

/// Which elements of a matrix dropout keeps: a function of key and position alone. So backward, and a
/// recomputed forward, use the mask of the first forward, on every device.
struct dropout_mask {
  std::uint64_t key = 0;      ///< a different one for every use
  std::uint32_t dropped = 0;  ///< the expected number among 65536 elements; 0: none

  /// `rate` is the probability to drop an element, in [0, 1); it is rounded to a multiple of 2^-16.
  [[nodiscard]] static constexpr dropout_mask with(double rate, std::uint64_t key) {
    return {key, static_cast<std::uint32_t>(rate * 65536.0 + 0.5)};
  }

  /// 16 bits for each of four neighbours: elements 4 * block to 4 * block + 3 of a row.
  [[nodiscard]] constexpr std::uint64_t draw(std::uint64_t row, std::uint64_t block) const {
    return mixed(key + ((row << 32U) + block) * 0x9E3779B97F4A7C15U);
  }
  /// Whether element `neighbour`, 0 to 3, of the block is kept, from the block's draw().
  [[nodiscard]] constexpr bool keeps(std::uint64_t drawn, int neighbour) const {
    return ((drawn >> (16 * neighbour)) & 0xFFFFU) >= dropped;
  }
  /// The factor of an element that is kept; it preserves the mean.
  template <class W>
  [[nodiscard]] constexpr W factor() const {
    return W{65536} / static_cast<W>(65536 - dropped);
  }
  /// 0 or factor(), for element `i` of a row.
  template <class W>
  [[nodiscard]] constexpr W of(std::uint64_t row, std::int64_t i) const {
    auto const at = static_cast<std::uint64_t>(i);
    return keeps(draw(row, at / 4), static_cast<int>(at % 4)) ? factor<W>() : W{0};
  }
};

/// out = addend + x * mask for one row of `count` elements, in wide<T>, rounded once; out may be x or addend.
template <element T>
struct dropout_add {
  dropout_mask mask;   ///< its row is 0, its elements 0 to count - 1
  T const* x;          ///< [count]
  T const* addend;     ///< or null
  T* out;              ///< [count]; may be x or addend
  std::int64_t count;  ///< elements
};

}  // namespace superoffload::kernel
