// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/state_format.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

// How AdamW's numbers are stored in each state_format, as operations on the bits of floats. `Word` is a
// number of 32 bits, or a vector of them. All processors use these functions, so that they give the same
// bits.
//
// float32  m and v are floats.
// bf16     m and v are bfloat16.
// int8     Each block of m, and of v, shares the exponent E of its largest magnitude. An element is a code of
//          8 bits, a small float: v has 4 bits of exponent and 4 of fraction, m a sign, 4 bits of exponent
//          and 3 of fraction. Codes are numbers from 2^(E-15) to 2^(E+1); code 0 is zero. Smaller numbers
//          become zero or the smallest code, but a v that is not zero never becomes zero, since m is divided
//          by its root. A master of a bfloat16 weight keeps its upper 24 bits.
//
// Rounding is stochastic: a number becomes one of its two neighbours, with probabilities that preserve the
// mean. So changes that are smaller than half the distance of two neighbours are not lost, as they would be
// in rounding to nearest. A number that can be stored stays as it is.
namespace superoffload::kernel {

/// Elements of a block of format int8. Every array of the format, and every part of it that a kernel works
/// on, begins and ends with a block.
inline constexpr std::int64_t state_block = 64;

/// @{
/// What the functions below ask of a Word beside its operators.
constexpr std::uint32_t lesser(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
constexpr std::uint32_t greater(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }
/// x, but 0 where `test` is 0.
constexpr std::uint32_t unless_zero(std::uint32_t test, std::uint32_t x) { return test == 0 ? 0 : x; }
/// @}

/// 32 random bits of an element: a function of its index in its unit and of the key of the step. Each
/// operation is a permutation of words. So over random keys the bits of an element are uniform and
/// independent. Within one key, multiplication by the golden ratio spreads the bits of neighbours evenly.
/// Indices that differ by 2^32 share their bits.
template <class Word>
constexpr Word noise_of(Word index, std::uint32_t key) {
  auto const bits = (index ^ Word(key)) * Word(0x9E3779B1U);
  return bits ^ (bits >> 16);
}
/// The key of a step in a unit: their words, each mixed in by Wellons' finalizer lowbias32
/// (nullprogram.com/blog/2018/07/31).
constexpr std::uint32_t noise_key(std::int64_t step, int unit) {
  std::uint32_t key = 0x5EED5EEDU;
  for (auto const word : {static_cast<std::uint32_t>(unit), static_cast<std::uint32_t>(step >> 32),
                          static_cast<std::uint32_t>(step)}) {
    key ^= word;
    key = (key ^ (key >> 16)) * 0x7FEB352DU;
    key = (key ^ (key >> 15)) * 0x846CA68BU;
    key ^= key >> 16;
  }
  return key;
}

/// Which of the moments.
enum class moment { m, v };

/// The storage of a moment in a format. `noise` is noise_of the element; m, v and the master use different
/// bits of it.
template <state_format F, moment Of>
struct moment_code;

template <moment Of>
struct moment_code<state_format::bf16, Of> {
  /// The upper 16 bits of the result are stored; the others are zero.
  template <class Word>
  static constexpr Word rounded(Word bits, Word noise) {
    return (bits + (Of == moment::m ? noise & Word(0xFFFFU) : noise >> 16)) & Word(0xFFFF0000U);
  }
};

template <moment Of>
struct moment_code<state_format::int8, Of> {
  static constexpr int fraction = Of == moment::m ? 3 : 4;  ///< bits
  static constexpr int shift = 23 - fraction;               ///< from a float's bits to a code's
  static constexpr std::uint32_t largest = Of == moment::m ? 0x7FU : 0xFFU;
  /// A block's least exponent, as floats store it: its smallest code is no subnormal float.
  static constexpr std::uint32_t least_exponent = 16;

  /// The exponent of a block, from the bits of its largest magnitude: one more where that magnitude lies
  /// above the largest code.
  template <class Word>
  static constexpr Word exponent(Word magnitude) {
    return greater((magnitude + Word((1U << shift) - 1)) >> 23, Word(least_exponent));
  }
  /// What the exponent adds to a code's bits.
  template <class Word>
  static constexpr Word base(Word exponent) {
    return (exponent - Word(15)) << 23;
  }
  /// A code of 8 bits, where the block's exponent is that of its largest magnitude.
  template <class Word>
  static constexpr Word encoded(Word bits, Word base, Word noise) {
    auto const magnitude = bits & Word(0x7FFFFFFFU);
    // 12 random bits and, so that their mean is a half, half of the last one.
    constexpr std::uint32_t half = 1U << (shift - 13);
    auto const dither = (Of == moment::m ? noise << 8 : noise >> 5) & Word(4095U * 2 * half);
    auto const code = (greater(magnitude, base) + dither + (Word(half) - base)) >> shift;
    if constexpr (Of == moment::m) {
      return code | ((bits >> 24) & Word(0x80U));
    } else {
      return greater(code, lesser(magnitude, Word(1)));
    }
  }
  template <class Word>
  static constexpr Word decoded(Word code, Word base) {
    auto const magnitude = code & Word(largest);
    auto const bits = unless_zero(magnitude, (magnitude << shift) + base);
    return Of == moment::m ? bits | ((code & Word(0x80U)) << 24) : bits;
  }
};

/// Are masters stored in 24 bits?
template <element T, state_format F>
inline constexpr bool short_master = std::same_as<T, bfloat16> && F == state_format::int8;

/// A master's bits as they are stored.
template <element T, state_format F, class Word>
constexpr Word rounded_master(Word bits, Word noise) {
  if constexpr (short_master<T, F>) {
    return (bits + (noise >> 24)) & Word(0xFFFFFF00U);
  } else {
    return bits;
  }
}

// Arrays
// ---------------------------------------------------------------------------------------------------------

/// Codes of format int8 and the exponents of their blocks.
struct block_codes {
  std::uint8_t* codes = nullptr;      ///< one for each element
  std::uint8_t* exponents = nullptr;  ///< one for each block

  /// The array from element `first` on, a multiple of state_block.
  friend constexpr block_codes operator+(block_codes array, std::int64_t first) {
    return {array.codes + first, array.exponents + first / state_block};
  }
  friend constexpr bool operator==(block_codes, block_codes) = default;  ///< the same array
};

/// Masters of 24 bits: bfloat16::of_master, and the upper 8 of the low_of_master, whose other bits are zero.
struct short_masters {
  bfloat16* high = nullptr;     ///< one for each element
  std::uint8_t* low = nullptr;  ///< one for each element

  /// The array from element `first` on.
  friend constexpr short_masters operator+(short_masters array, std::int64_t first) {
    return {array.high + first, array.low + first};
  }
};

/// An array of m or of v.
template <state_format F>
using moments = std::conditional_t<F == state_format::float32, float*,
                                   std::conditional_t<F == state_format::bf16, bfloat16*, block_codes>>;
/// What the working weight does not hold of a master: its low 16 or 8 bits; of no meaning for float.
template <state_format F>
using low_bits = std::conditional_t<F == state_format::int8, std::uint8_t, std::uint16_t>;
/// An array of whole masters.
template <element T, state_format F>
using masters = std::conditional_t<short_master<T, F>, short_masters, float*>;

}  // namespace superoffload::kernel
