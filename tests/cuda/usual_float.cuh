// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/kernels/exact_float.cuh>
#include <superoffload/kernel/stored_state.hpp>

#include <cstdint>

namespace superoffload::test {

using cuda::kernels::exact_float;
using cuda::kernels::usual_float;

__device__ inline bool same_bits(float a, float b) { return __float_as_uint(a) == __float_as_uint(b); }

/// Counts the floats below the bound whose roots differ.
__global__ void compare_roots(unsigned long long* different) {
  std::uint64_t const step = std::uint64_t{gridDim.x} * blockDim.x;
  for (auto bits = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       bits < __float_as_uint(usual_float::largest); bits += step) {
    auto const x = __uint_as_float(static_cast<unsigned>(bits));
    if (!same_bits(usual_float::root{}(x).value, exact_float::root{}(x).value)) {
      atomicAdd(different, 1ULL);
    }
  }
}

/// A float of random sign and fraction with an exponent from -bound to bound - 1.
__device__ inline float random_float(unsigned noise, int bound) {
  auto const exponent =
      127 - bound + static_cast<int>((noise >> 23 & 0xFFU) % (2 * static_cast<unsigned>(bound)));
  return __uint_as_float((noise & 0x807FFFFFU) | static_cast<unsigned>(exponent) << 23);
}

/// Counts the pairs whose quotients differ, of 2^32, and all dividends of zero.
__global__ void compare_quotients(unsigned long long* different) {
  std::uint64_t const step = std::uint64_t{gridDim.x} * blockDim.x;
  for (auto i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < std::uint64_t{1} << 32; i += step) {
    auto const index = static_cast<unsigned>(i);
    auto const noise = kernel::noise_of(index, 0x1234567U), more = kernel::noise_of(noise, 0x89ABCDEU);
    auto const dividend = i % 64 == 0 ? __uint_as_float(noise & 0x80000000U) : random_float(noise, 60);
    auto const divisor = fabsf(random_float(more, 60));
    if (!same_bits((usual_float{dividend} / usual_float{divisor}).value,
                   (exact_float{dividend} / exact_float{divisor}).value)) {
      atomicAdd(different, 1ULL);
    }
  }
}

inline std::uint64_t count_of(void (*compare)(unsigned long long*)) {
  unsigned long long* different = nullptr;
  unsigned long long counted = 1;
  auto const check = [](cudaError_t status) { cuda::detail::check(status, "comparing floats", "the GPU"); };
  check(cudaMalloc(&different, sizeof(counted)));
  check(cudaMemset(different, 0, sizeof(counted)));
  compare<<<1024, 256>>>(different);
  check(cudaGetLastError());
  check(cudaMemcpy(&counted, different, sizeof(counted), cudaMemcpyDeviceToHost));
  check(cudaFree(different));
  return counted;
}

std::uint64_t different_roots() { return count_of(compare_roots); }
std::uint64_t different_quotients() { return count_of(compare_quotients); }

}  // namespace superoffload::test
