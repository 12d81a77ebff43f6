// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// y = x * inverse_rms * weight, inverse_rms = 1 / sqrt(mean(x^2) + epsilon), row by row, in wide<T>, rounded
/// once (Zhang & Sennrich, arXiv 1910.07467, eq. 4).
template <element T>
struct rms_norm_forward {
  T const* x;            ///< [rows, columns]
  T const* weight;       ///< [columns]
  T* y;                  ///< [rows, columns]
  wide<T>* inverse_rms;  ///< [rows]
  std::int64_t rows,     ///< tokens; may be 0
      columns;           ///< elements of a row
  double epsilon;        ///< added to the mean square, under the root
};

/// Rows of a block of partial sums of the weight's gradient; the last block may have fewer. The grid, and so
/// the sum, depends on `rows` alone: at most 256 blocks, as many as a large GPU runs at once; more would cost
/// memory traffic.
constexpr std::int64_t rms_norm_block_rows(std::int64_t rows) {
  constexpr std::int64_t least = 16;
  constexpr std::int64_t most_blocks = 256;
  return rows <= least * most_blocks ? least : (rows + most_blocks - 1) / most_blocks;
}

/// Rows of `partial` in rms_norm_backward, for `rows` tokens; at most 256.
constexpr std::int64_t rms_norm_blocks(std::int64_t rows) {
  return (rows + rms_norm_block_rows(rows) - 1) / rms_norm_block_rows(rows);
}

/// With n = x * inverse_rms: d_x (+)= inverse_rms * (d_y * weight - n * mean(d_y * weight * n));
/// partial[block] = sum over the block's rows of d_y * n; column_sum adds up the blocks. partial == nullptr:
/// not wanted.
template <element T>
struct rms_norm_backward {
  T const* d_y;                ///< [rows, columns]
  T const* x;                  ///< [rows, columns]
  T const* weight;             ///< [columns]
  wide<T> const* inverse_rms;  ///< [rows]
  T* d_x;                      ///< [rows, columns]; may be d_y itself when it is not accumulated
  wide<T>* partial;            ///< [rms_norm_blocks(rows), columns]
  std::int64_t rows,           ///< those of the forward
      columns;                 ///< elements of a row
  bool accumulate;             ///< add to what d_x holds
};

}  // namespace superoffload::kernel
