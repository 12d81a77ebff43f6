// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace superoffload::train {

/// The memory of an engine, known before it allocates: bytes of device memory. An engine that follows an
/// offload::plan allocates that plan's bytes.
struct allocation {
  std::int64_t parameters = 0;              ///< elements of the whole model, on all ranks
  std::int64_t trainable_parameters = 0;    ///< of these, the ones that are trained
  std::size_t weights = 0;                  ///< with the buffers for offloaded or gathered ones
  std::size_t gradients = 0;                ///< with their buffers
  std::size_t optimizer_state = 0;          ///< with its buffers
  std::size_t activations = 0;              ///< the arena: its peak for the largest micro-batch
  std::size_t batches = 0;                  ///< token ids and tables
  std::size_t workspaces = 0;               ///< of GEMMs; those of other kernels are among the activations
  std::size_t host = 0;                     ///< host memory: state, buffers and offloaded activations
  std::size_t activations_on_host = 0;      ///< of it, the offloaded activations
  std::int64_t results = 0;                 ///< of functions inside blocks that the backward needs
  std::int64_t results_recomputed = 0;      ///< of these, what the largest micro-batch computes again
  double recomputed_flops_per_token = 0.0;  ///< of the largest micro-batch, as one document

  /// Bytes of device memory.
  [[nodiscard]] std::size_t total() const {
    return weights + gradients + optimizer_state + activations + batches + workspaces;
  }
};

}  // namespace superoffload::train
