// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// out[c] (+)= the sum of x[r, c] over the rows r, in wide<T>, in an order that depends on the sizes alone.
template <element T, element Out = T>
struct column_sum {
  T const* x;               ///< [rows, columns]
  Out* out;                 ///< [columns]
  std::int64_t rows,        ///< may be 0: then the sum is 0
      columns;              ///< of x, and elements of out
  bool accumulate = false;  ///< add to what `out` holds
};

/// total (+)= the sum of `count` values, in double, in a fixed order.
template <element T>
struct sum {
  T const* values;          ///< [count]
  double* total;            ///< one number
  std::int64_t count;       ///< of values; may be 0
  bool accumulate = false;  ///< add to what `total` holds
};

/// Elements of a unit that one partial sum of squares covers. Shards are cut at multiples of it, so that a
/// global norm does not depend on how a model is sharded.
inline constexpr std::int64_t norm_grid = 65536;

/// Cells of norm_grid elements in `count` elements; the last may be shorter.
constexpr std::int64_t norm_cells(std::int64_t count) { return (count + norm_grid - 1) / norm_grid; }

/// partial[i] = sum of x^2 over the i-th cell of norm_grid elements, in double, in a fixed order. It is not
/// finite exactly when an element of the cell is not, or when the sum overflows double. Elements in a wider
/// type From are rounded to T first, and give the bits of the rounded elements' sum.
template <element T, element From = T>
struct square_sum {
  From const* x;       ///< [count]
  double* partial;     ///< [norm_cells(count)]
  std::int64_t count;  ///< elements; the last cell may be shorter
};

}  // namespace superoffload::kernel
