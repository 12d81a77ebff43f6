// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

/// The contracts of the kernels: one struct of arguments each, the same for every device, launched by
/// `launch(stream, arguments)`. All pointers are device memory. All matrices are dense and row-major. All
/// results are deterministic: they depend on the arguments only, never on the number of threads.
namespace superoffload::kernel {

/// c = op(a) * op(b) [+ bias] [+ addend] [+ c]; products and sums in wide<T>, rounded once to Out.
/// op(a) is [m, k]: `a` is stored [m, k], or [k, m] when transposed; op(b) is [k, n]: stored [k, n], or [n,
/// k].
template <element T, element Out = T>
struct gemm {
  T const* a;                 ///< [m, k], or [k, m] when transposed
  T const* b;                 ///< [k, n], or [n, k] when transposed
  Out* c;                     ///< [m, n]; must not overlap a, b or addend
  std::int64_t m,             ///< rows of c; may be 0
      n,                      ///< columns of c; may be 0
      k;                      ///< may be 0: then op(a) * op(b) is zero
  bool transpose_a = false;   ///< `a` is stored [k, m]
  bool transpose_b = false;   ///< `b` is stored [n, k]
  bool accumulate = false;    ///< add to what c holds
  T const* bias = nullptr;    ///< [n], added to every row
  T const* addend = nullptr;  ///< [m, n], for example a residual
};

}  // namespace superoffload::kernel
