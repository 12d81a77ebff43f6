// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace superoffload {

/// A bfloat16 number: the upper half of an IEEE single. Storage only; arithmetic widens to float.
struct bfloat16 {
  std::uint16_t bits = 0;  ///< sign, 8 bits of exponent, 7 of fraction

  constexpr bfloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  constexpr explicit bfloat16(float value) : bits{rounded_to_even(value)} {}
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }  ///< exact

  /// The number with this bit pattern.
  static constexpr bfloat16 from_bits(std::uint16_t pattern) {
    bfloat16 number;
    number.bits = pattern;
    return number;
  }

  /// The working weight of a master: rounded half away from zero on the bit pattern, so that the low 16 bits
  /// of the master restore it without loss. Defined for values below master_limit in magnitude.
  static constexpr bfloat16 of_master(float master) {
    return from_bits(static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(master) + 0x8000U) >> 16));
  }
  /// Masters are below it in magnitude: of_master would round larger ones to infinity.
  static constexpr float master_limit = 0x1.ffp127F;
  /// What of_master leaves: the low 16 bits of the master.
  static constexpr std::uint16_t low_of_master(float master) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(master));
  }
  /// The master whose of_master is `weight` and whose low_of_master is `low`, for every pattern of 32 bits.
  static constexpr float master_of(bfloat16 weight, std::uint16_t low) {
    auto const high = std::uint32_t{weight.bits} - (std::uint32_t{low} >> 15);
    return std::bit_cast<float>((high << 16) | low);
  }

  /// Compares values: -0 equals 0, NaN equals nothing.
  friend constexpr bool operator==(bfloat16 a, bfloat16 b) { return float{a} == float{b}; }

private:
  static constexpr std::uint16_t rounded_to_even(float value) {
    auto const pattern = std::bit_cast<std::uint32_t>(value);
    if ((pattern & 0x7FFFFFFFU) > 0x7F800000U) {
      return static_cast<std::uint16_t>((pattern >> 16) | 0x40U);
    }
    return static_cast<std::uint16_t>((pattern + 0x7FFFU + ((pattern >> 16) & 1U)) >> 16);
  }
};
static_assert(sizeof(bfloat16) == 2);

/// An IEEE half, read from checkpoints only.
struct float16 {
  std::uint16_t bits = 0;  ///< sign, 5 bits of exponent, 10 of fraction

  /// Exact, for subnormal numbers too.
  constexpr operator float() const {
    std::uint32_t const sign = (bits & 0x8000U) << 16;
    std::uint32_t const exponent = (bits >> 10) & 31U;
    std::uint32_t const fraction = bits & 1023U;
    if (exponent == 31U) {
      return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
    }
    if (exponent != 0U) {
      return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
    }
    float const magnitude = static_cast<float>(fraction) * 0x1p-24F;  // subnormal or zero
    return sign != 0U ? -magnitude : magnitude;
  }
};
static_assert(sizeof(float16) == 2);

/// The element types that files and plans name at run time.
enum class dtype : std::uint8_t { f64, f32, bf16, f16, u8 };

constexpr std::size_t size_of(dtype type) {
  switch (type) {
    case dtype::f64:
      return 8;
    case dtype::f32:
      return 4;
    case dtype::bf16:
    case dtype::f16:
      return 2;
    case dtype::u8:
      return 1;
  }
  return 0;
}

/// The name in safetensors files.
constexpr std::string_view name_of(dtype type) {
  switch (type) {
    case dtype::f64:
      return "F64";
    case dtype::f32:
      return "F32";
    case dtype::bf16:
      return "BF16";
    case dtype::f16:
      return "F16";
    case dtype::u8:
      return "U8";
  }
  return "";
}

/// The element types of activations, working weights and gradients: bfloat16 and float for training, double
/// for tests.
template <class T>
concept element = std::same_as<T, bfloat16> || std::same_as<T, float> || std::same_as<T, double>;

namespace detail {
template <class T>
struct wide {
  using type = T;
};
template <>
struct wide<bfloat16> {
  using type = float;
};
}  // namespace detail

/// The type in which sums of `T` are kept: float for bfloat16 and float, double for double.
template <element T>
using wide = typename detail::wide<T>::type;

template <element T>
inline constexpr dtype dtype_of = std::same_as<T, bfloat16> ? dtype::bf16
                                  : std::same_as<T, float>  ? dtype::f32
                                                            : dtype::f64;

}  // namespace superoffload
