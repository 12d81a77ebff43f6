// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/dropout.hpp>

#include <cstddef>
#include <cstdint>

namespace superoffload::kernel {

/// Whose attention a device with several uses: its own kernels (flash), a library's, or the fastest that it
/// has for a shape. See cudnn/choose.hpp.
enum class attention_implementation { automatic, flash, cudnn };

/// Pairs of a query and a key that it sees in a document of `length` tokens; `window` as in attention_shape.
constexpr std::int64_t visible_pairs(std::int64_t length, std::int32_t window) {
  if (window == 0 || length <= window) {
    return length * (length + 1) / 2;
  }
  return std::int64_t{window} * (window + 1) / 2 + (length - window) * window;
}

/// What forward and backward of attention have in common. Rows are tokens, documents lie one behind the
/// other; a query sees the keys of its own document up to itself, the last `window` of them when window > 0.
/// Query head h uses key and value head h / (heads / kv_heads).
struct attention_shape {
  std::int32_t const* starts;  ///< [documents + 1] first row of each document, last = rows (device memory)
  std::int64_t documents, rows;
  std::int32_t heads, kv_heads, head_dim;
  std::int32_t longest;     ///< rows of the longest document
  std::int32_t window = 0;  ///< 0: no limit
  double scale;             ///< of the scores, head_dim^-1/2 as a rule
  dropout_mask dropout{};   ///< of the weights, behind softmax

  /// Columns of a row of queries, keys and values side by side: q heads, then k heads, then v heads.
  [[nodiscard]] constexpr std::int64_t qkv_columns() const {
    return std::int64_t{heads + 2 * kv_heads} * head_dim;
  }
  /// The dropout's row for a query of a head; its elements are the keys, counted from the document's first.
  [[nodiscard]] constexpr std::uint64_t dropout_row(std::int64_t row, std::int64_t head) const {
    return static_cast<std::uint64_t>(row * heads + head);
  }
};

/// Device memory that a kernel writes to while it runs and nobody reads afterwards. A device's
/// `scratch_bytes(device, arguments)` says how much its kernel wants.
struct scratch_memory {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// out = dropout(softmax(scale * q k^T, causal)) v, softmax and sums in wide<T>; log_sum_exp of the scaled
/// scores is kept for the backward of the same device, in an order of its own. With sinks, each head has one
/// more score in the denominator that carries no value; attention_sinks_backward is their gradient. A
/// document whose values are not finite leaves the others as they are; only with Hopper's own kernels its
/// predecessor may suffer.
template <element T>
struct attention_forward {
  attention_shape shape;
  T const* qkv;              ///< [rows, qkv_columns]
  T* out;                    ///< [rows, heads * head_dim]
  wide<T>* log_sum_exp;      ///< [heads, rows]
  T const* sinks = nullptr;  ///< [heads] or none
  scratch_memory scratch{};
};

/// The gradient of attention_forward; probabilities are computed again from log_sum_exp.
template <element T>
struct attention_backward {
  attention_shape shape;
  T const* qkv;                ///< [rows, qkv_columns]
  T const* out;                ///< [rows, heads * head_dim]
  T const* d_out;              ///< [rows, heads * head_dim]
  wide<T> const* log_sum_exp;  ///< [heads, rows]
  wide<T>* delta;              ///< [heads, rows] scratch: row sums of out * d_out
  T* d_qkv;                    ///< [rows, qkv_columns], overwritten
  T const* sinks = nullptr;    ///< [heads] or none
  scratch_memory scratch{};
};

/// Rows of one block of partial sums of the sinks' gradient, the last block fewer.
inline constexpr std::int64_t attention_sinks_block_rows = 64;
constexpr std::int64_t attention_sinks_blocks(std::int64_t rows) {
  return (rows + attention_sinks_block_rows - 1) / attention_sinks_block_rows;
}

/// The gradient of the sinks, from what forward and backward have: partial[block, head] = minus the sum over
/// the block's rows of exp(sink - log_sum_exp) times the row's sum of out * d_out, to be added up by
/// column_sum.
template <element T>
struct attention_sinks_backward {
  attention_shape shape;
  T const* out;                ///< [rows, heads * head_dim]
  T const* d_out;              ///< [rows, heads * head_dim]
  wide<T> const* log_sum_exp;  ///< as forward on the same device left it
  T const* sinks;              ///< [heads]
  wide<T>* partial;            ///< [attention_sinks_blocks(rows), heads], overwritten
  /// Set by the device where its order is another than [heads, rows]: so many rows of a head are side by side
  /// in log_sum_exp, then come as many of the next head. 0: all rows.
  std::int64_t rows_together = 0;
};

}  // namespace superoffload::kernel
