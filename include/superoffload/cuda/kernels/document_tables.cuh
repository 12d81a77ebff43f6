// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/document_tables.hpp>
#include <superoffload/cuda/kernels/vector.cuh>

namespace superoffload::cuda::kernels {

inline constexpr int document_tables_threads = 256;

template <int = 0>
__global__ void document_tables_kernel(document_tables t) {
  auto const i = static_cast<std::int64_t>(blockIdx.x) * document_tables_threads + threadIdx.x;
  if (i > t.padded) {
    return;
  }
  std::int64_t const first = t.starts[i < t.documents ? i : t.documents];
  for (int k = 0; k < 3; ++k) { t.offsets[k][i] = first * t.widths[k]; }
  if (i < t.padded) {
    t.lengths[i] = i < t.documents ? static_cast<std::int32_t>(t.starts[i + 1] - first) : 0;
  }
}

}  // namespace superoffload::cuda::kernels
