// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// Rows sorted by group: group g has the rows starts[g] to starts[g + 1] - 1, possibly none. Only the device
/// knows the sizes; the host knows the total.
struct row_groups {
  std::int32_t const* starts;  ///< [groups + 1], the first 0, the last `rows` (device memory)
  std::int64_t groups,         ///< known to the host
      rows;                    ///< the sum of all groups' rows
};

/// c = a * op(b[g]) [+ bias[g]], for the rows of each group g; products and sums in wide<T>, rounded once.
template <element T>
struct grouped_gemm {
  row_groups of;             ///< groups of the rows of a and c
  T const* a;                ///< [rows, k]
  T const* b;                ///< [groups, k, n], or [groups, n, k] when transposed
  T* c;                      ///< [rows, n]; must not overlap a or b
  std::int64_t n,            ///< columns of c
      k;                     ///< columns of a
  bool transpose_b = false;  ///< each b[g] is stored [n, k]
  T const* bias = nullptr;   ///< [groups, n] or none
};

/// c[g] = a[g]^T * b[g] [+ c[g]] over the rows of each group g, in wide<T>, rounded once. A group without
/// rows gives zero, or leaves c unchanged.
template <element T, element Out = T>
struct grouped_outer {
  row_groups of;            ///< groups of the rows of a and b
  T const* a;               ///< [rows, m]
  T const* b;               ///< [rows, n]
  Out* c;                   ///< [groups, m, n]
  std::int64_t m,           ///< columns of a
      n;                    ///< columns of b
  bool accumulate = false;  ///< add to what c holds
};

/// out[g] (+)= the sum of the rows of group g, in wide<T>, in an order that depends on the sizes alone.
template <element T, element Out = T>
struct grouped_column_sum {
  row_groups of;            ///< groups of the rows of x
  T const* x;               ///< [rows, columns]
  Out* out;                 ///< [groups, columns]
  std::int64_t columns;     ///< of x and of out
  bool accumulate = false;  ///< add to what `out` holds
};

}  // namespace superoffload::kernel
