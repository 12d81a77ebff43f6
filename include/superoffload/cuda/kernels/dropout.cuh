// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/elementwise.cuh>
#include <superoffload/kernel/dropout.hpp>

namespace superoffload::cuda::kernels {

template <class T>
__global__ void dropout_add_kernel(kernel::dropout_add<T> a) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  auto const i = flat_index<n>();
  auto const left = a.count - i;
  if (left <= 0) {
    return;
  }
  W x[n], sum[n]{};
  load(a.x + i, left, x);
  if (a.addend != nullptr) {
    load(a.addend + i, left, sum);
  }
  auto const factor = a.mask.template factor<W>();
  std::uint64_t drawn = 0;
#pragma unroll
  for (int j = 0; j < n; ++j) {
    if (j % 4 == 0) {
      drawn = a.mask.draw(0, static_cast<std::uint64_t>((i + j) / 4));
    }
    auto const neighbour = static_cast<int>((i + j) % 4);
    sum[j] += a.mask.keeps(drawn, neighbour) ? x[j] * factor : W{0};
  }
  store(a.out + i, left, sum);
}

template <element T>
void run(stream& on, kernel::dropout_add<T> const& a) {
  start(on, dropout_add_kernel<T>, flat_blocks<lanes<T>>(a.count), flat_threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
