// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// AdamW's state as its kernels hold it in registers, and how it is loaded and stored in each format.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/cpu/kernels/streaming.hpp>
#include <superoffload/cpu/kernels/words.hpp>
#include <superoffload/kernel/adamw.hpp>

#include <cstdint>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Vectors whose state is loaded and stored together: those of a block, or one.
template <state_format F>
inline constexpr int vectors_of_group =
    F == state_format::int8 ? static_cast<int>(kernel::state_block) / lanes<float> : 1;

// Prefetching
// ----------------------------------------------------------------------------------------------------

SUPEROFFLOAD_ALWAYS_INLINE inline void prefetch(kernel::block_codes array, int64_t i) {
  prefetch(array.codes, i);
}
SUPEROFFLOAD_ALWAYS_INLINE inline void prefetch(kernel::short_masters array, int64_t i) {
  prefetch(array.high, i);
  prefetch(array.low, i);
}

/// As for_streamed_vectors: calls body(i, whole or part) for the groups of format F.
template <state_format F, class Body, class... Inputs>
SUPEROFFLOAD_ALWAYS_INLINE inline void for_streamed_groups(int64_t first, int64_t last, int64_t count,
                                                           Body const& body, Inputs... inputs) {
  if constexpr (F != state_format::int8) {
    for_streamed_vectors(first, last, count, body, inputs...);
  } else {
    auto const mine = range_of(first, last, elements_of_item, count);
    for (auto i = mine.begin; i < mine.end; i += kernel::state_block) {
      for (auto ahead = elements_ahead; ahead < elements_ahead + kernel::state_block;
           ahead += elements_of_round) {
        (prefetch(inputs, i + ahead), ...);
      }
      body(i, whole{});
    }
  }
}

// Masters
// --------------------------------------------------------------------------------------------------------

/// The masters of weights whose low 8 of 24 bits are stored beside them.
inline vector<float> load_master(bfloat16 const* weight, std::uint8_t const* low, whole) {
  auto const high = bits_of(load<float>(weight, whole{}));
  return floats_of(high + (load_signed_words(reinterpret_cast<std::int8_t const*>(low)) << 8));
}
inline void store_master(bfloat16* weight, std::uint8_t* low, vector<float> x, whole) {
  store<rounding::half_away>(weight, x, whole{});
  store_words(low, bits_of(x) >> 8);
}
inline vector<float> load_master(float const* weight, std::uint8_t const*, whole) {
  return load<float>(weight, whole{});
}
inline void store_master(float* weight, std::uint8_t*, vector<float> x, whole) { store(weight, x, whole{}); }

/// Whole masters.
template <class Extent>
vector<float> load_whole_master(float const* from, Extent extent) {
  return load<float>(from, extent);
}
template <class Extent>
void store_whole_master(float* to, vector<float> x, Extent extent) {
  store(to, x, extent);
}
inline vector<float> load_whole_master(kernel::short_masters from, whole) {
  return load_master(from.high, from.low, whole{});
}
inline void store_whole_master(kernel::short_masters to, vector<float> x, whole) {
  store_master(to.high, to.low, x, whole{});
}

// Moments
// --------------------------------------------------------------------------------------------------------

/// The noise of a group's vectors.
template <state_format F>
struct group_noise {
  words values[vectors_of_group<F>];

  /// `index` is the group's in its unit.
  SUPEROFFLOAD_ALWAYS_INLINE group_noise(int64_t index, kernel::adamw_step const& step) {
    for (int k = 0; k < vectors_of_group<F>; ++k) {
      auto const first = static_cast<std::uint32_t>(index + int64_t{k} * lanes<float>);
      values[k] = kernel::noise_of(counted_from(first), step.noise);
    }
  }
};

/// A moment of a group.
template <state_format F, kernel::moment Of>
struct moment_group {
  static constexpr int n = vectors_of_group<F>;
  exact_floats values[n];

  template <class Extent>
  SUPEROFFLOAD_ALWAYS_INLINE void load_from(kernel::moments<F> from, int64_t i, Extent extent) {
    if constexpr (F == state_format::int8) {
      using code = kernel::moment_code<F, Of>;
      auto const base = code::base(words{std::uint32_t{from.exponents[i / kernel::state_block]}});
      for (int k = 0; k < n; ++k) {
        values[k] = floats_of(code::decoded(load_words(from.codes + i + k * lanes<float>), base));
      }
    } else {
      values[0] = load<float>(from + i, extent);
    }
  }
  /// Stores the values, and leaves them as they are stored.
  template <class Extent>
  SUPEROFFLOAD_ALWAYS_INLINE void store_to(kernel::moments<F> to, int64_t i, group_noise<F> const& noise,
                                           Extent extent) {
    if constexpr (F == state_format::float32) {
      drop_nan_payloads();
      store(to + i, vector<float>{values[0]}, extent);
    } else if constexpr (F == state_format::bf16) {
      drop_nan_payloads();
      auto const rounded = kernel::moment_code<F, Of>::rounded(bits_of(values[0]), noise.values[0]);
      values[0] = floats_of(rounded);
      if constexpr (std::same_as<Extent, whole>) {
        store_words(reinterpret_cast<std::uint16_t*>(to + i), rounded >> 16);
      } else {
        bfloat16 buffer[lanes<float>];
        store_words(reinterpret_cast<std::uint16_t*>(buffer), rounded >> 16);
        store_part<bfloat16, float>(to + i, buffer, extent);
      }
    } else {
      using code = kernel::moment_code<F, Of>;
      auto greatest = greatest_magnitude();
      if (greatest > 0x7F800000U) [[unlikely]] {  // a NaN
        drop_nan_payloads();
        greatest = greatest_magnitude();
      }
      auto const exponent = code::exponent(greatest);
      to.exponents[i / kernel::state_block] = static_cast<std::uint8_t>(exponent);
      words const base{code::base(exponent)};
      for (int k = 0; k < n; ++k) {
        auto const stored = code::encoded(bits_of(values[k]), base, noise.values[k]);
        store_words(to.codes + i + k * lanes<float>, stored);
        values[k] = floats_of(code::decoded(stored, base));
      }
    }
  }

private:
  SUPEROFFLOAD_ALWAYS_INLINE void drop_nan_payloads() {
    for (int k = 0; k < n; ++k) { values[k] = without_nan_payload(values[k]); }
  }
  /// Its bits.
  SUPEROFFLOAD_ALWAYS_INLINE std::uint32_t greatest_magnitude() const {
    auto greatest = bits_of(values[0]) & words{0x7FFFFFFFU};
    for (int k = 1; k < n; ++k) { greatest = greater(greatest, bits_of(values[k]) & words{0x7FFFFFFFU}); }
    return greatest_of_lanes(greatest);
  }
};

// All of it
// ------------------------------------------------------------------------------------------------------

/// The state of a group. Masters are always rounded as they are stored, moments only after load_moments and
/// store_moments: a step uses its moments before they are rounded.
///
/// Kernels call these functions more than once. All is inlined, lambdas too: a call would pass the state in
/// memory, which takes twice the time.
template <element T, state_format F>
struct adamw_group {
  static constexpr int n = vectors_of_group<F>;
  exact_floats master[n];
  moment_group<F, kernel::moment::m> m;
  moment_group<F, kernel::moment::v> v;

  template <class Extent>
  SUPEROFFLOAD_ALWAYS_INLINE void load_masters(kernel::masters<T, F> from, int64_t i, Extent extent) {
    for (int k = 0; k < n; ++k) { master[k] = load_whole_master(from + (i + at(k)), extent); }
  }
  template <class Extent>
  SUPEROFFLOAD_ALWAYS_INLINE void store_masters(kernel::masters<T, F> to, int64_t i, Extent extent) const {
    for (int k = 0; k < n; ++k) { store_whole_master(to + (i + at(k)), stored_master(k), extent); }
  }
  template <class Arguments, class Extent>
  SUPEROFFLOAD_ALWAYS_INLINE void load_moments(Arguments const& a, int64_t i, Extent extent) {
    m.load_from(a.m, i, extent);
    v.load_from(a.v, i, extent);
  }
  template <class Arguments, class Extent>
  SUPEROFFLOAD_ALWAYS_INLINE void store_moments(Arguments const& a, int64_t i, kernel::adamw_step const& step,
                                                Extent extent) {
    store_moments_to(a.m, a.v, i, group_noise<F>{a.index + i, step}, extent);
  }
  template <class Extent>
  SUPEROFFLOAD_ALWAYS_INLINE void store_moments_to(kernel::moments<F> to_m, kernel::moments<F> to_v,
                                                   int64_t i, group_noise<F> const& noise, Extent extent) {
    m.store_to(to_m, i, noise, extent);
    v.store_to(to_v, i, noise, extent);
  }
  /// A step with the gradients from element `i` on. `index` is the index of element 0 in its unit.
  template <element G, class Extent>
  SUPEROFFLOAD_ALWAYS_INLINE void advance(G const* gradients, int64_t i, kernel::adamw_step const& step,
                                          int64_t index, Extent extent) {
    for (int k = 0; k < n; ++k) {
      auto gradient = load<float>(gradients + i + at(k), extent);
      if constexpr (!std::same_as<T, G>) {
        gradient = rounded_to<T>(gradient);
      }
      // Of copies: g++ 12 fails on an inlined function that changes elements of arrays.
      auto w = master[k], mean = m.values[k], square = v.values[k];
      kernel::adamw_rule(w, mean, square, exact_floats{gradient}, step,
                         [](exact_floats x) { return sqrt(x); });
      master[k] = w;
      m.values[k] = mean;
      v.values[k] = square;
    }
    if constexpr (kernel::short_master<T, F>) {
      group_noise<F> const noise{index + i, step};
      for (int k = 0; k < n; ++k) {
        auto const bits = bits_of(without_nan_payload(master[k]));
        master[k] = floats_of(kernel::rounded_master<T, F>(bits, noise.values[k]));
      }
    }
  }

  /// A vector of masters, whose NaN are written in one way.
  SUPEROFFLOAD_ALWAYS_INLINE vector<float> stored_master(int k) const {
    if constexpr (kernel::short_master<T, F>) {
      return vector<float>{master[k]};
    } else {
      return vector<float>{without_nan_payload(master[k])};
    }
  }
  /// The first element of a vector in its group.
  static constexpr int64_t at(int vector) { return int64_t{vector} * lanes<float>; }
};

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
