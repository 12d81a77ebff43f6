// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::nn {

/// A micro-batch in device memory, with index arrays derived on the host. See data::batch for the host's
/// side. The creator owns the pointers; they live until the backward is done.
struct batch {
  std::int64_t rows = 0;       ///< tokens of all documents together
  std::int64_t documents = 0;  ///< sequences that attention keeps apart
  std::int64_t segments = 0;   ///< distinct token ids
  std::int32_t longest = 0;    ///< rows of the longest document
  std::int64_t divisor =
      1;  ///< label tokens of the whole step: the loss is the sum over its targets / divisor
  std::uint64_t noise = 0;                       ///< seed of dropout, different for every micro-batch
  std::int32_t const* tokens = nullptr;          ///< [rows]
  std::int32_t const* targets = nullptr;         ///< [rows], -1 = none
  std::int32_t const* positions = nullptr;       ///< [rows]
  std::int32_t const* padding = nullptr;         ///< [rows], not 0: padding; null: there is none
  std::int32_t const* starts = nullptr;          ///< [documents + 1]
  std::int32_t const* order = nullptr;           ///< [rows] rows sorted by token, stably
  std::int32_t const* segment_starts = nullptr;  ///< [segments + 1] into order
  std::int32_t const* segment_ids = nullptr;     ///< [segments] the token of each segment
  /// So many ranks have as many rows each of the micro-batch, one after the other. Documents, starts and
  /// longest are of all their rows; all else is of this rank's.
  int sequence_ranks = 1;
  int sequence_rank = 0;  ///< this one of them
};

}  // namespace superoffload::nn
