// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// Rotary position embedding, in place, of the first `heads` heads of each row: the pair (x[j], x[j +
/// turned/2]) of a head is rotated by the angle of position and j (Su et al., arXiv 2104.09864; the pairs are
/// formed from halves, not neighbours). The elements behind the first `turned` of a head stay.
template <element T>
struct rotary {
  T* x;                           ///< [rows, stride]; heads lie side by side from each row's start
  std::int32_t const* positions;  ///< [rows], each in [0, table length)
  wide<T> const* cosines;         ///< [table length, turned / 2]
  wide<T> const* sines;           ///< [table length, turned / 2]
  std::int64_t rows,              ///< tokens; may be 0
      stride;                     ///< elements from one row to the next, at least heads * head_dim
  std::int32_t heads,             ///< to rotate; later elements of a row stay as they are
      head_dim,                   ///< elements of a head
      turned;                     ///< even, at most head_dim
  bool inverse = false;           ///< rotate back: the gradient
};

}  // namespace superoffload::kernel
