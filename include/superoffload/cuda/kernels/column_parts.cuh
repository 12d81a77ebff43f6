// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/column_parts.hpp>

#include <numeric>

namespace superoffload::cuda::kernels {

inline constexpr int column_parts_threads = 128;

/// A block is a row of one part. Pieces are whole words.
template <class Word>
__global__ void column_parts_kernel(kernel::column_parts a) {
  constexpr int size = sizeof(Word);
  int64_t const row = blockIdx.x / a.parts;
  int64_t const part = blockIdx.x % a.parts;
  auto const row_bytes = a.row_bytes();
  auto const* const from = static_cast<Word const*>(a.from);
  auto* const to = static_cast<Word*>(a.to);
  auto in_matrix = row * a.parts * row_bytes / size;
  auto in_part = (part * a.rows + row) * row_bytes / size;
  for (auto const bytes : {a.piece_bytes[0], a.piece_bytes[1], a.piece_bytes[2]}) {
    auto const words = bytes / size;
    auto const piece = in_matrix + part * words;
    for (int64_t i = threadIdx.x; i < words; i += column_parts_threads) {
      to[a.joins ? piece + i : in_part + i] = from[a.joins ? in_part + i : piece + i];
    }
    in_matrix += a.parts * words;
    in_part += words;
  }
}

inline void run(stream& on, kernel::column_parts const& a) {
  auto const start_with = [&](auto* kernel) {
    start(on, kernel, a.rows * a.parts, column_parts_threads, 0, a);
  };
  auto common = std::gcd(a.piece_bytes[0], std::gcd(a.piece_bytes[1], a.piece_bytes[2]));
  for (void const* const array : {a.from, static_cast<void const*>(a.to)}) {
    common = std::gcd(common, static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(array) % 16));
  }
  if (common % 16 == 0) {
    start_with(column_parts_kernel<uint4>);
  } else if (common % 4 == 0) {
    start_with(column_parts_kernel<unsigned>);
  } else {
    start_with(column_parts_kernel<unsigned short>);
  }
}

}  // namespace superoffload::cuda::kernels
