// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/float8.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// *bits becomes the pattern, as a float, of the largest magnitude among the numbers, unless it is already
/// larger. Patterns are compared, so infinity is above all finite numbers, and NaN above infinity.
struct largest_magnitude {
  bfloat16 const* x;    ///< [count]
  std::uint32_t* bits;  ///< one pattern; 0 before the first call
  std::int64_t count;   ///< may be 0
};

/// Numbers of 8 bits, and the scale of them: x times float8_scale::of(*largest).factor, rounded.
struct quantize {
  bfloat16 const* x;             ///< [rows, columns]
  std::uint32_t const* largest;  ///< the pattern of the largest magnitude of x; see largest_magnitude
  float8* out;                   ///< [rows, columns], or null
  float8* transposed;            ///< [columns, stride], or null; zero from column `rows` on
  float* inverse;                ///< one number: float8_scale::inverse
  std::int64_t rows,             ///< may be 0
      columns,                   ///< may be 0
      stride = 0;                ///< at least `rows`
};

/// c = a b^T times both scales [+ bias] [+ addend] [+ c]; products and sums in float, rounded once to Out.
/// Scales are powers of 2, so multiplying by them rounds nothing but what leaves the range of float.
template <element Out>
struct float8_gemm {
  float8 const* a;                   ///< [m, k]
  float8 const* b;                   ///< [n, k]
  float const* a_inverse;            ///< one number, of quantize
  float const* b_inverse;            ///< one number, of quantize
  Out* c;                            ///< [m, n]; must not overlap any other
  std::int64_t m,                    ///< rows of c; may be 0
      n,                             ///< columns of c; may be 0
      k;                             ///< may be 0: then the product is zero
  bool accumulate = false;           ///< add to what c holds
  bfloat16 const* bias = nullptr;    ///< [n], added to every row
  bfloat16 const* addend = nullptr;  ///< [m, n], for example a residual
};

/// Rows in the memory of a matrix that is the transposed operand of a float8_gemm: its k is a multiple of 16
/// then, as cuBLASLt wants it.
constexpr std::int64_t float8_stride(std::int64_t rows) { return (rows + 15) / 16 * 16; }

}  // namespace superoffload::kernel
