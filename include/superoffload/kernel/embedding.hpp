// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// out[r] = table[ids[r]].
template <element T>
struct embedding_forward {
  T const* table;           ///< [vocabulary, columns]
  std::int32_t const* ids;  ///< [rows], each in [0, vocabulary)
  T* out;                   ///< [rows, columns]
  std::int64_t rows,        ///< tokens; may be 0
      columns;              ///< elements of a table row
};

/// gradient[id] += sum over the rows r with ids[r] == id of d_out[r], in the order of the rows, in wide<T>.
/// The caller sorts the rows: segment s holds the rows order[starts[s]] .. order[starts[s + 1] - 1], all with
/// the id segment_ids[s]. The segment of `ignored` adds nothing.
template <element T, element G = T>
struct embedding_backward {
  T const* d_out;                   ///< [rows, columns]
  std::int32_t const* order;        ///< [rows] row indices, stably sorted by id
  std::int32_t const* starts;       ///< [segments + 1]
  std::int32_t const* segment_ids;  ///< [segments], distinct
  G* gradient;                      ///< [vocabulary, columns]
  std::int64_t segments,            ///< distinct ids
      columns;                      ///< elements of a table row
  std::int32_t ignored = -1;        ///< an id, -1: none
};

}  // namespace superoffload::kernel
