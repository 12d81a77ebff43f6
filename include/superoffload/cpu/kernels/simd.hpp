// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The one header that knows xsimd and intrinsics: vectors of float and double, and how to read and write
// them.
#pragma once

#include <superoffload/core/dtype.hpp>

#include <bit>
#include <cmath>
#include <cstdint>

#if !defined(SUPEROFFLOAD_KERNEL_SCALAR)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push  // g++ 12 takes undefined registers in its own intrinsics for mistakes
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <xsimd/xsimd.hpp>
#pragma GCC diagnostic pop
#else
#include <xsimd/xsimd.hpp>
#endif
#endif

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

using std::int32_t;
using std::int64_t;

#if defined(SUPEROFFLOAD_KERNEL_SCALAR)
/// A vector of one.
template <class W>
struct vector {
  static constexpr int size = 1;
  W value;

  vector() = default;
  vector(W x) : value{x} {}
  static vector load_unaligned(W const* from) { return *from; }
  void store_unaligned(W* to) const { *to = value; }

  friend vector operator+(vector a, vector b) { return a.value + b.value; }
  friend vector operator-(vector a, vector b) { return a.value - b.value; }
  friend vector operator*(vector a, vector b) { return a.value * b.value; }
  friend vector operator/(vector a, vector b) { return a.value / b.value; }
  friend vector operator-(vector a) { return -a.value; }
  friend vector max(vector a, vector b) { return a.value > b.value ? a.value : b.value; }
  friend vector sqrt(vector a) { return std::sqrt(a.value); }
  friend vector exp(vector a) { return std::exp(a.value); }
  friend vector without_nan_payload(vector a) {
    return a.value == a.value ? a.value : std::bit_cast<float>(0x7FC00000U);
  }
};
template <class W>
inline constexpr int lanes = 1;
#else
template <class W>
using vector = xsimd::batch<W>;
template <class W>
inline constexpr int lanes = static_cast<int>(vector<W>::size);

#if defined(__aarch64__)
/// xsimd refines estimates of quotients and roots of floats on this processor; here they are as IEEE has
/// them.
struct exact_floats {
  float32x4_t value;

  exact_floats() = default;
  explicit exact_floats(float x) : value(vdupq_n_f32(x)) {}
  explicit exact_floats(float32x4_t x) : value(x) {}
  exact_floats(vector<float> x) : value(static_cast<float32x4_t>(x)) {}
  operator vector<float>() const { return value; }

  friend exact_floats operator+(exact_floats a, exact_floats b) {
    return exact_floats{vaddq_f32(a.value, b.value)};
  }
  friend exact_floats operator-(exact_floats a, exact_floats b) {
    return exact_floats{vsubq_f32(a.value, b.value)};
  }
  friend exact_floats operator*(exact_floats a, exact_floats b) {
    return exact_floats{vmulq_f32(a.value, b.value)};
  }
  friend exact_floats operator/(exact_floats a, exact_floats b) {
    return exact_floats{vdivq_f32(a.value, b.value)};
  }
  friend exact_floats sqrt(exact_floats a) { return exact_floats{vsqrtq_f32(a.value)}; }
};
#endif

/// Every NaN becomes 0x7FC00000.
inline vector<float> without_nan_payload(vector<float> x) {
  return xsimd::select(x == x, x, vector<float>(std::bit_cast<float>(0x7FC00000U)));
}
#endif

#if defined(SUPEROFFLOAD_KERNEL_SCALAR) || !defined(__aarch64__)
using exact_floats = vector<float>;
#endif

/// How much of a vector an access covers.
struct whole {};
struct part {
  int count;  ///< the first lanes, less than all
};

/// Calls body(i, whole or part) for the vectors at i = 0, lanes, ... of `count` elements.
template <class W, class Body>
[[gnu::always_inline]] inline void for_vectors(int64_t count, Body const& body) {
  int64_t i = 0;
  for (; i + lanes<W> <= count; i += lanes<W>) { body(i, whole{}); }
  if (i < count) {
    body(i, part{static_cast<int>(count - i)});
  }
}

template <class W>
vector<W> load(W const* from, whole) {
  return vector<W>::load_unaligned(from);
}
template <class W>
void store(W* to, vector<W> x, whole) {
  x.store_unaligned(to);
}

/// Widens exactly.
template <class W>
  requires std::same_as<W, float>
vector<W> load(bfloat16 const* from, whole) {
#if defined(__AVX512F__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const bits = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
#elif defined(__AVX2__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const bits = _mm_loadu_si128(reinterpret_cast<__m128i const*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
#elif defined(__aarch64__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const bits = vld1_u16(reinterpret_cast<std::uint16_t const*>(from));
  return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
#else
  static_assert(lanes<W> == 1);
  return float{*from};
#endif
}

enum class rounding { to_even, half_away };

/// As bfloat16{x} rounds, or as bfloat16::of_master does.
template <rounding Mode = rounding::to_even>
void store(bfloat16* to, vector<float> x, whole) {
#if defined(__AVX512F__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const bits = _mm512_castps_si512(x);
  auto high = _mm512_srli_epi32(bits, 16);
  if constexpr (Mode == rounding::to_even) {
    auto const odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    auto const rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    auto const quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    auto const nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    high = _mm512_mask_blend_epi32(nan, _mm512_srli_epi32(rounded, 16), quiet);
  } else {
    high = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x8000)), 16);
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(high));
#elif defined(__AVX2__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const bits = _mm256_castps_si256(x);
  auto high = _mm256_srli_epi32(bits, 16);
  if constexpr (Mode == rounding::to_even) {
    auto const odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    auto const rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    auto const quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    auto const nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    high = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, nan);
  } else {
    high = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x8000)), 16);
  }
  auto const packed = _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), packed);
#elif defined(__aarch64__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const bits = vreinterpretq_u32_f32(x);
  auto high = vshrq_n_u32(bits, 16);
  if constexpr (Mode == rounding::to_even) {
    auto const odd = vandq_u32(high, vdupq_n_u32(1));
    auto const rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
    auto const quiet = vorrq_u32(high, vdupq_n_u32(0x40));
    high = vbslq_u32(vceqq_f32(x, x), vshrq_n_u32(rounded, 16), quiet);
  } else {
    high = vshrq_n_u32(vaddq_u32(bits, vdupq_n_u32(0x8000)), 16);
  }
  vst1_u16(reinterpret_cast<std::uint16_t*>(to), vmovn_u32(high));
#else
  *to = Mode == rounding::to_even ? bfloat16{x.value} : bfloat16::of_master(x.value);
#endif
}

/// The masters that are split into working weights and their own low halves (bfloat16::master_of): the sum
/// of the weight's bits and the low half as a signed number.
inline vector<float> load_master(bfloat16 const* weight, std::uint16_t const* low, whole) {
#if defined(__AVX512F__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const high = _mm512_castps_si512(load<float>(weight, whole{}));
  auto const halves = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(low));
  return _mm512_castsi512_ps(_mm512_add_epi32(high, _mm512_cvtepi16_epi32(halves)));
#elif defined(__AVX2__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const high = _mm256_castps_si256(load<float>(weight, whole{}));
  auto const halves = _mm_loadu_si128(reinterpret_cast<__m128i const*>(low));
  return _mm256_castsi256_ps(_mm256_add_epi32(high, _mm256_cvtepi16_epi32(halves)));
#elif defined(__aarch64__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const high = vshll_n_u16(vld1_u16(reinterpret_cast<std::uint16_t const*>(weight)), 16);
  auto const halves = vmovl_s16(vreinterpret_s16_u16(vld1_u16(low)));
  return vreinterpretq_f32_u32(vaddq_u32(high, vreinterpretq_u32_s32(halves)));
#else
  return bfloat16::master_of(*weight, *low);
#endif
}
inline void store_master(bfloat16* weight, std::uint16_t* low, vector<float> x, whole) {
  store<rounding::half_away>(weight, x, whole{});
#if defined(__AVX512F__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const halves = _mm512_cvtepi32_epi16(_mm512_castps_si512(x));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(low), halves);
#elif defined(__AVX2__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  auto const halves = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0xFFFF));
  auto const packed = _mm_packus_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(low), packed);
#elif defined(__aarch64__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  vst1_u16(low, vmovn_u32(vreinterpretq_u32_f32(x)));
#else
  *low = bfloat16::low_of_master(x.value);
#endif
}

/// The other lanes are zero.
template <class W, class T>
vector<W> load(T const* from, part some) {
  T buffer[lanes<W>]{};
  for (int i = 0; i < some.count; ++i) { buffer[i] = from[i]; }
  return load<W>(buffer, whole{});
}
template <class T, class W>
void store_part(T* to, T const (&buffer)[lanes<W>], part some) {
  for (int i = 0; i < some.count; ++i) { to[i] = buffer[i]; }
}
template <class W>
void store(W* to, vector<W> x, part some) {
  W buffer[lanes<W>];
  store(buffer, x, whole{});
  store_part<W, W>(to, buffer, some);
}
template <rounding Mode = rounding::to_even>
void store(bfloat16* to, vector<float> x, part some) {
  bfloat16 buffer[lanes<float>];
  store<Mode>(buffer, x, whole{});
  store_part<bfloat16, float>(to, buffer, some);
}

inline vector<float> load_master(bfloat16 const* weight, std::uint16_t const* low, part some) {
  bfloat16 weights[lanes<float>]{};
  std::uint16_t halves[lanes<float>]{};
  for (int i = 0; i < some.count; ++i) {
    weights[i] = weight[i];
    halves[i] = low[i];
  }
  return load_master(weights, halves, whole{});
}
inline void store_master(bfloat16* weight, std::uint16_t* low, vector<float> x, part some) {
  bfloat16 weights[lanes<float>];
  std::uint16_t halves[lanes<float>];
  store_master(weights, halves, x, whole{});
  for (int i = 0; i < some.count; ++i) {
    weight[i] = weights[i];
    low[i] = halves[i];
  }
}
/// A working weight in float is the master itself.
template <class Extent>
vector<float> load_master(float const* weight, std::uint16_t const*, Extent extent) {
  return load<float>(weight, extent);
}
template <class Extent>
void store_master(float* weight, std::uint16_t*, vector<float> x, Extent extent) {
  store(weight, x, extent);
}

/// Rounded as bfloat16{x} does and widened again, for T == bfloat16.
template <element T>
vector<float> rounded_to(vector<float> x) {
  if constexpr (std::same_as<T, bfloat16>) {
    bfloat16 buffer[lanes<float>];
    store(buffer, x, whole{});
    return load<float>(buffer, whole{});
  } else {
    return x;
  }
}

/// x with `filler` in the lanes that `some` leaves out.
template <class W>
vector<W> filled(vector<W> x, W, whole) {
  return x;
}
template <class W>
vector<W> filled(vector<W> x, W filler, part some) {
  W buffer[lanes<W>];
  store(buffer, x, whole{});
  for (int i = some.count; i < lanes<W>; ++i) { buffer[i] = filler; }
  return load<W>(buffer, whole{});
}

template <class W>
W sum_of_lanes(vector<W> x) {
  W buffer[lanes<W>];
  store(buffer, x, whole{});
  for (int half = lanes<W> / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) { buffer[i] += buffer[i + half]; }
  }
  return buffer[0];
}
template <class W>
W max_of_lanes(vector<W> x) {
  W buffer[lanes<W>];
  store(buffer, x, whole{});
  W highest = buffer[0];
  for (int i = 1; i < lanes<W>; ++i) { highest = buffer[i] > highest ? buffer[i] : highest; }
  return highest;
}

constexpr int64_t pieces_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

/// Elements that one item of work covers where nothing else decides: large enough to be worth a thread's
/// attention, small enough to keep many busy.
inline constexpr int64_t elements_of_item = 16384;

constexpr int64_t rows_of_item(int64_t columns) {
  return columns >= elements_of_item ? 1 : elements_of_item / (columns < 1 ? 1 : columns);
}

/// Rows or elements [begin, end) of the items [first, last).
struct range {
  int64_t begin, end;
};
constexpr range range_of(int64_t first, int64_t last, int64_t size, int64_t count) {
  return {first * size, last * size < count ? last * size : count};
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
