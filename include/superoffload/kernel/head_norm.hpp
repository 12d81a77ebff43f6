// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/rms_norm.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// Rows of queries, keys and values side by side. Queries and keys are normalised and rotated.
struct head_norm_shape {
  std::int64_t rows,     ///< tokens
      stride;            ///< elements of a row: query, key and value heads
  std::int32_t queries,  ///< heads from the start of a row
      keys,              ///< key heads behind them
      head_dim;          ///< even

  /// Heads of a row that are normalised; each has its own inverse_rms.
  [[nodiscard]] constexpr std::int32_t heads() const { return queries + keys; }
};

/// RMSNorm of every query and key head by itself, then rotary position embedding. With inverse_rms = 1 /
/// sqrt(mean(x^2) + epsilon) over a head: y = rotated(x * inverse_rms * weight), in wide<T>, rounded once;
/// see rms_norm_forward and rotary. Values are copied.
template <element T>
struct head_norm_forward {
  head_norm_shape shape;          ///< of x and y
  T const* x;                     ///< [rows, stride]
  T const* weight;                ///< [2, head_dim]: of queries, of keys
  std::int32_t const* positions;  ///< [rows], each in [0, table length)
  wide<T> const* cosines;         ///< [table length, head_dim / 2]
  wide<T> const* sines;           ///< [table length, head_dim / 2]
  T* y;                           ///< [rows, stride], not x
  wide<T>* inverse_rms;           ///< [rows, heads]
  double epsilon;                 ///< added to the mean square, under the root
};

/// In place: d holds the gradient of y, and then that of x; the part of the values stays the same.
/// partial[block] = the sum over the block's rows of the weight's gradient, in blocks of rms_norm_block_rows;
/// column_sum adds up the blocks. partial == nullptr: not wanted.
template <element T>
struct head_norm_backward {
  head_norm_shape shape;          ///< that of the forward
  T const* x;                     ///< [rows, stride]
  T const* weight;                ///< [2, head_dim]
  std::int32_t const* positions;  ///< [rows]
  wide<T> const* cosines;         ///< [table length, head_dim / 2]
  wide<T> const* sines;           ///< [table length, head_dim / 2]
  wide<T> const* inverse_rms;     ///< [rows, heads]
  T* d;                           ///< [rows, stride]
  wide<T>* partial;               ///< [rms_norm_blocks(rows), 2, head_dim]
};

}  // namespace superoffload::kernel
