// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/grouped_gemm.cuh>
#include <superoffload/cuda/kernels/hopper_grouped_gemm.cuh>

namespace superoffload::cuda::kernels {

template <element T>
void run(stream& on, kernel::grouped_gemm<T> const& g) {
  if (g.of.rows == 0) {
    return;
  }
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (hopper::run(on, g)) {
      return;
    }
  }
  auto const across = pieces_of(g.n, grouped_tile);
  start(on, grouped_gemm_kernel<T>, (g.of.rows / grouped_tile + g.of.groups) * across,
        grouped_tile * grouped_tile, 0, g, static_cast<int>(across));
}

template <element T, element Out>
void run(stream& on, kernel::grouped_outer<T, Out> const& g) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (hopper::run(on, g)) {
      return;
    }
  }
  auto const down = pieces_of(g.m, grouped_tile);
  auto const across = pieces_of(g.n, grouped_tile);
  start(on, grouped_outer_kernel<T, Out>, g.of.groups * down * across, grouped_tile * grouped_tile, 0, g,
        down, across);
}

}  // namespace superoffload::cuda::kernels
