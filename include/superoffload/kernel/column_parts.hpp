// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace superoffload::kernel {

/// Copies the columns of a matrix to parts, or back. A row of the matrix consists of segments, such as its
/// queries, keys and values; each has `parts` pieces side by side. Part p has piece p of every segment:
/// [parts, rows, the sum of piece_bytes].
struct column_parts {
  void const* from;                         ///< the matrix; with `joins`, the parts
  void* to;                                 ///< the parts; with `joins`, the matrix. Must not overlap `from`
  std::array<std::int64_t, 3> piece_bytes;  ///< of each segment, multiples of 2; 0: there is none
  std::int64_t rows;                        ///< may be 0
  std::int32_t parts;                       ///< at least 1
  bool joins = false;                       ///< from the parts to the matrix

  /// Bytes of a row of one part.
  [[nodiscard]] constexpr std::int64_t row_bytes() const {
    return piece_bytes[0] + piece_bytes[1] + piece_bytes[2];
  }
};

}  // namespace superoffload::kernel
