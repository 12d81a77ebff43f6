// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/dropout.hpp>

#include <cstddef>
#include <cstdint>

namespace superoffload::kernel {

/// Which attention kernels a device with several uses: its own (flash), cuDNN's, or the faster one for the
/// shape. See cudnn/choose.hpp.
enum class attention_implementation { automatic, flash, cudnn };

/// Pairs of a query and a key visible to it, in a document of `length` tokens; `window` as in
/// attention_shape.
constexpr std::int64_t visible_pairs(std::int64_t length, std::int32_t window) {
  if (window == 0 || length <= window) {
    return length * (length + 1) / 2;
  }
  return std::int64_t{window} * (window + 1) / 2 + (length - window) * window;
}

/// The shape that forward and backward of attention share. Rows are tokens; documents lie one after the
/// other. A query sees the keys of its own document up to itself, and only the last `window` of them when
/// window > 0. Query head h uses key and value head h / (heads / kv_heads).
struct attention_shape {
  std::int32_t const* starts;  ///< [documents + 1] first row of each document, last = rows (device memory)
  std::int64_t documents,      ///< entries of `starts` less one
      rows;                    ///< of all documents together
  std::int32_t heads,          ///< query heads, a multiple of kv_heads
      kv_heads,                ///< key heads, and as many value heads
      head_dim;                ///< elements of a head
  std::int32_t longest;        ///< rows of the longest document
  std::int32_t window = 0;     ///< 0: no limit
  double scale;                ///< of the scores, usually head_dim^-1/2
  dropout_mask dropout{};      ///< of the weights, after softmax

  /// Columns of a row of queries, keys and values side by side: q heads, then k heads, then v heads.
  [[nodiscard]] constexpr std::int64_t qkv_columns() const {
    return std::int64_t{heads + 2 * kv_heads} * head_dim;
  }
  /// The row of the dropout mask for a query and head; its elements are the document's keys, from the first.
  [[nodiscard]] constexpr std::uint64_t dropout_row(std::int64_t row, std::int64_t head) const {
    return static_cast<std::uint64_t>(row * heads + head);
  }
};

/// Device memory that a kernel writes to while it runs; its contents are meaningless afterwards.
/// `scratch_bytes(device, arguments)` gives the size that a device's kernel needs.
struct scratch_memory {
  void* data = nullptr;   ///< null when the kernel needs none
  std::size_t bytes = 0;  ///< at least what scratch_bytes gives for the same arguments
};

/// out = dropout(softmax(scale * q k^T, causal)) v, softmax and sums in wide<T>. log_sum_exp of the scaled
/// scores is kept for the backward on the same device; its order is the device's own. With sinks, each head
/// has one more score in the denominator that carries no value; attention_sinks_backward computes their
/// gradient. Values of a document that are not finite do not reach other documents, except the previous one
/// in Hopper's own kernels.
template <element T>
struct attention_forward {
  attention_shape shape;     ///< the same for forward and backward
  T const* qkv;              ///< [rows, qkv_columns]
  T* out;                    ///< [rows, heads * head_dim]
  wide<T>* log_sum_exp;      ///< [heads, rows]
  T const* sinks = nullptr;  ///< [heads] or none
  scratch_memory scratch{};  ///< as large as scratch_bytes says
};

/// The gradient of attention_forward; probabilities are recomputed from log_sum_exp.
template <element T>
struct attention_backward {
  attention_shape shape;       ///< that of the forward, with its dropout
  T const* qkv;                ///< [rows, qkv_columns]
  T const* out;                ///< [rows, heads * head_dim]
  T const* d_out;              ///< [rows, heads * head_dim]
  wide<T> const* log_sum_exp;  ///< [heads, rows]
  wide<T>* delta;              ///< [heads, rows] scratch: row sums of out * d_out
  T* d_qkv;                    ///< [rows, qkv_columns], overwritten
  T const* sinks = nullptr;    ///< [heads] or none
  scratch_memory scratch{};    ///< as large as scratch_bytes says
};

/// Rows of a block of partial sums of the sinks' gradient; the last block may have fewer.
inline constexpr std::int64_t attention_sinks_block_rows = 64;
/// Rows of `partial` in attention_sinks_backward, for `rows` tokens.
constexpr std::int64_t attention_sinks_blocks(std::int64_t rows) {
  return (rows + attention_sinks_block_rows - 1) / attention_sinks_block_rows;
}

/// The gradient of the sinks, from the results of forward and backward: partial[block, head] = minus the sum
/// over the block's rows of exp(sink - log_sum_exp) times the row's sum of out * d_out. column_sum adds up
/// the blocks.
template <element T>
struct attention_sinks_backward {
  attention_shape shape;       ///< that of the forward
  T const* out;                ///< [rows, heads * head_dim]
  T const* d_out;              ///< [rows, heads * head_dim]
  wide<T> const* log_sum_exp;  ///< as written by forward on the same device
  T const* sinks;              ///< [heads]
  wide<T>* partial;            ///< [attention_sinks_blocks(rows), heads], overwritten
  /// For a device whose log_sum_exp is not [heads, rows]: that many rows of a head lie side by side, then as
  /// many of the next head. 0: all rows.
  std::int64_t rows_together = 0;
};

}  // namespace superoffload::kernel
