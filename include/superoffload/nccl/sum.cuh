// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The kernel of nccl/sum.hpp. One source of a program includes it; CMake generates that source.
#pragma once

#ifndef SUPEROFFLOAD_COMPILED
#define SUPEROFFLOAD_COMPILED
#endif

#ifdef __FAST_MATH__
#error "the kernels promise IEEE arithmetic: compile them without fast math"
#endif

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/nccl/sum.hpp>

namespace superoffload::nccl {

namespace {

namespace kernels = cuda::kernels;

constexpr int threads = 256;

template <class From, class To>
__global__ void sum_kernel(sum_of_parts<From, To> a) {
  constexpr int n = kernels::lanes<From, To>;
  auto const i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * n;
  auto const left = a.count - i;
  if (left <= 0) {
    return;
  }
  auto const* other = a.others;
  auto const next = [&](int r) {
    if (a.own != nullptr && r == a.rank) {
      return a.own + i;
    }
    auto const* const part = reinterpret_cast<From const*>(other) + i;
    other += a.part_bytes;
    return part;
  };
  wide<From> sum[n], x[n];
  kernels::load(next(0), left, sum);
#pragma unroll 4
  for (int r = 1; r < a.ranks; ++r) {
    kernels::load(next(r), left, x);
#pragma unroll
    for (int j = 0; j < n; ++j) { sum[j] += x[j]; }
  }
  if (a.accumulate) {
    kernels::load(a.to + i, left, x);
#pragma unroll
    for (int j = 0; j < n; ++j) { sum[j] += x[j]; }
  }
  kernels::store(a.to + i, left, sum);
}

}  // namespace

template <element From, element To>
void launch(cuda::stream& on, sum_of_parts<From, To> const& a) {
  constexpr std::int64_t of_a_block = kernels::lanes<From, To> * threads;
  on.activate();
  kernels::start(on, sum_kernel<From, To>, kernels::pieces_of(a.count, of_a_block), threads, 0, a);
  on.check_launch("sum_kernel");
}

template void launch(cuda::stream&, sum_of_parts<float, float> const&);
template void launch(cuda::stream&, sum_of_parts<float, bfloat16> const&);
template void launch(cuda::stream&, sum_of_parts<bfloat16, bfloat16> const&);
template void launch(cuda::stream&, sum_of_parts<bfloat16, float> const&);
template void launch(cuda::stream&, sum_of_parts<double, double> const&);

}  // namespace superoffload::nccl
