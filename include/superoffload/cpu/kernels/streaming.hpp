// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// Passes over arrays that are far larger than caches.
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Elements between two looks ahead: a cache line of bfloat16, two of float.
inline constexpr int64_t elements_of_round = 32;

/// How far ahead is asked for memory, in elements. The processor's own prefetching starts over in every page
/// and follows few arrays at a time; with a distance of 2 to 4 KiB of floats an update of the optimizer is 10
/// to 20 % faster, on one core and on all.
inline constexpr int64_t elements_ahead = 512;

/// Asks for the elements [i, i + elements_of_round), which may lie behind the array.
template <class T>
[[gnu::always_inline]] inline void prefetch(T const* array, int64_t i) {
  auto const from = reinterpret_cast<std::uintptr_t>(array) + static_cast<std::uintptr_t>(i) * sizeof(T);
  for (std::uintptr_t byte = 0; byte < elements_of_round * sizeof(T); byte += 64) {
    __builtin_prefetch(reinterpret_cast<void const*>(from + byte));
  }
}

/// Calls body(i, whole or part) for the vectors of the items [first, last) of arrays of `count` elements, of
/// which `inputs` are read. There are two calls, and no loop of a fixed length that the compiler would
/// unroll: the bodies of optimizers are large, and take time to compile.
template <class Body, class... T>
[[gnu::always_inline]] inline void for_streamed_vectors(int64_t first, int64_t last, int64_t count,
                                                        Body const& body, T const*... inputs) {
  auto const mine = range_of(first, last, elements_of_item, count);
  auto i = mine.begin;
  for (; i + lanes<float> <= mine.end; i += lanes<float>) {
    if (i % elements_of_round == 0) {
      (prefetch(inputs, i + elements_ahead), ...);
    }
    body(i, whole{});
  }
  if (i < mine.end) {
    body(i, part{static_cast<int>(mine.end - i)});
  }
}

/// Can all vectors of `to` be stored around the caches?
template <class T>
bool stores_past_caches(T const* to) {
  return reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
}

/// Stores around the caches, where the processor can, what this thread does not read again: the line is not
/// fetched first. `to` is aligned to the vector. Needs finish_stores() before other threads may read.
[[gnu::always_inline]] inline void store_past_caches(float* to, vector<float> x) {
#if defined(__AVX512F__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  _mm512_stream_ps(to, x);
#elif defined(__AVX2__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  _mm256_stream_ps(to, x);
#else
  store(to, x, whole{});
#endif
}
/// The same, rounded as bfloat16::of_master.
[[gnu::always_inline]] inline void store_past_caches(bfloat16* to, vector<float> x) {
#if defined(__AVX512F__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  alignas(32) bfloat16 rounded[lanes<float>];
  store<rounding::half_away>(rounded, x, whole{});
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), *reinterpret_cast<__m256i const*>(rounded));
#elif defined(__AVX2__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  alignas(16) bfloat16 rounded[lanes<float>];
  store<rounding::half_away>(rounded, x, whole{});
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), *reinterpret_cast<__m128i const*>(rounded));
#else
  store<rounding::half_away>(to, x, whole{});
#endif
}
/// Copies around the caches, where the processor can and `to` is aligned to a cache line. `from` is aligned
/// to one. Needs finish_stores() before other threads may read.
inline void copy_past_caches(void* to, void const* from, std::size_t bytes) {
  std::size_t done = 0;
#if defined(__AVX2__) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  if (stores_past_caches(static_cast<std::byte*>(to))) {
    for (; done + 64 <= bytes; done += 64) {
      auto* const there = reinterpret_cast<__m256i*>(static_cast<std::byte*>(to) + done);
      auto const* const here = reinterpret_cast<__m256i const*>(static_cast<std::byte const*>(from) + done);
      _mm256_stream_si256(there, _mm256_load_si256(here));
      _mm256_stream_si256(there + 1, _mm256_load_si256(here + 1));
    }
  }
#endif
  std::memcpy(static_cast<std::byte*>(to) + done, static_cast<std::byte const*>(from) + done, bytes - done);
}
inline void finish_stores() {
#if (defined(__AVX512F__) || defined(__AVX2__)) && !defined(SUPEROFFLOAD_KERNEL_SCALAR)
  _mm_sfence();
#endif
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
