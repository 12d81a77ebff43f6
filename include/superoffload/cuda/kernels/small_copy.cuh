// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/cuda/small_copy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace superoffload::cuda::kernels {

inline constexpr int small_copy_threads = 256;
/// As many as keep the link busy; the other multiprocessors are left to GEMMs.
inline constexpr std::int64_t small_copy_blocks = 16;

struct small_copy_arguments {
  std::byte* to;
  std::byte const* from;
  std::size_t bytes;
};

template <int = 0>
__global__ void small_copy_kernel(small_copy_arguments a) {
  auto const first = static_cast<std::size_t>(blockIdx.x) * small_copy_threads + threadIdx.x;
  auto const threads = static_cast<std::size_t>(gridDim.x) * small_copy_threads;
  auto const addresses = reinterpret_cast<std::uintptr_t>(a.to) | reinterpret_cast<std::uintptr_t>(a.from);
  auto const whole = addresses % sizeof(uint4) == 0 ? a.bytes / sizeof(uint4) : 0;
  for (auto i = first; i < whole; i += threads) {
    reinterpret_cast<uint4*>(a.to)[i] = reinterpret_cast<uint4 const*>(a.from)[i];
  }
  for (auto i = whole * sizeof(uint4) + first; i < a.bytes; i += threads) { a.to[i] = a.from[i]; }
}

}  // namespace superoffload::cuda::kernels
