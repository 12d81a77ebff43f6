// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// A router's choice of experts. Each of `rows` tokens chooses the `each` experts with its highest logits, in
/// descending order, the lower number where logits are equal; NaN counts as minus infinity. Choice c belongs
/// to row c / each; there are `choices` = rows * each of them.
struct routing_shape {
  std::int64_t rows,  ///< tokens; may be 0
      experts;        ///< columns of the logits
  std::int32_t each;  ///< 1 to `experts`
  /// Do the weights of a row add up to 1? Then they are the softmax of the chosen logits: the same as a
  /// softmax of all logits, normalised after the choice. Otherwise the softmax is over all logits.
  bool normalised = true;

  /// The number of choices of all rows.
  [[nodiscard]] constexpr std::int64_t choices() const { return rows * each; }
};

/// Chooses the experts of each row, as routing_shape says, and their weights.
template <element T>
struct route_forward {
  routing_shape shape;   ///< rows, experts and choices
  T const* logits;       ///< [rows, experts]
  std::int32_t* chosen;  ///< [choices] the expert of each choice
  wide<T>* weights;      ///< [choices]
  T* dense = nullptr;    ///< [rows, experts], the weights of the chosen and zeros, or null: not wanted
};

/// d_logits from the gradients of both results of route_forward, `weights` and `dense`.
template <element T>
struct route_backward {
  routing_shape shape;         ///< that of the forward
  T const* logits;             ///< [rows, experts]
  std::int32_t const* chosen;  ///< [choices]
  wide<T> const* weights;      ///< [choices]
  wide<T> const* d_weights;    ///< [choices]
  T const* d_dense = nullptr;  ///< [rows, experts] or none; read where a row chose
  T* d_logits;                 ///< [rows, experts], overwritten
};

/// Sorts the choices by expert, stably. Position i of the sorted order holds choice order[i]; expert e has
/// the positions starts[e] to starts[e + 1] - 1.
struct group_choices {
  std::int32_t const* chosen;  ///< [choices], each in [0, experts)
  std::int32_t* starts;        ///< [experts + 1]
  std::int32_t* order;         ///< [choices]
  std::int32_t* places;        ///< [choices], the inverse of order
  std::int64_t choices,        ///< rows * each
      experts;                 ///< the number of experts
};

/// out[i] = x[order[i] / each]: the rows of the choices, sorted by expert.
template <element T>
struct gather_rows {
  T const* x;                 ///< [choices / each, columns]
  std::int32_t const* order;  ///< [choices]
  T* out;                     ///< [choices, columns]
  std::int64_t choices,       ///< rows * each
      columns;                ///< elements of a row
  std::int32_t each;          ///< choices of a row of x
};

/// out[r] = [addend[r]] + the sum of grouped[places[c]] over the choices c of row r, in their order, in
/// wide<T>, rounded once.
template <element T>
struct combine_rows {
  T const* grouped;            ///< [rows * each, columns]
  std::int32_t const* places;  ///< [rows * each]
  T const* addend;             ///< [rows, columns] or none; may be `out`
  T* out;                      ///< [rows, columns]
  std::int64_t rows,           ///< tokens; may be 0
      columns;                 ///< elements of a row
  std::int32_t each;           ///< choices of a row
};

}  // namespace superoffload::kernel
