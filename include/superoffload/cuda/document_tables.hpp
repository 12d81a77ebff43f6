// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/stream.hpp>

#include <array>
#include <cstdint>

namespace superoffload::cuda {

/// Tables that libraries need of documents that lie one after the other: the length of each, and where it
/// begins in arrays of a few row widths. Empty documents fill the tables up to `padded`. All of it is device
/// memory.
struct document_tables {
  std::int32_t const* starts;            ///< [documents + 1], as of kernel::attention_shape
  std::int64_t documents,                ///< of the batch
      padded;                            ///< with the empty ones behind them, at least `documents`
  std::int32_t* lengths;                 ///< [padded]
  std::array<std::int64_t, 3> widths;    ///< elements of a row
  std::array<std::int64_t*, 3> offsets;  ///< [padded + 1] each: first row times width
};

/// Queues the kernel that fills the tables. Defined in kernels.cuh.
void fill(stream& on, document_tables const& tables);

}  // namespace superoffload::cuda
