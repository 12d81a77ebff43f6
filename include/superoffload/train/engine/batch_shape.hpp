// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace superoffload::train {

/// The largest micro-batch of a run.
struct batch_shape {
  std::int64_t rows = 0;       ///< tokens of this rank, padding included
  std::int64_t positions = 0;  ///< tokens of the longest document
  int sequence_ranks = 1;      ///< so many ranks have as many rows each of the micro-batch
};

}  // namespace superoffload::train
