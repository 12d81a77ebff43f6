// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace superoffload::train {

/// What an engine allocates, known before it does: bytes of device memory. An engine that follows an
/// offload::plan allocates that plan's bytes.
struct allocation {
  std::int64_t parameters = 0;
  std::int64_t trainable_parameters = 0;
  std::size_t weights = 0;
  std::size_t gradients = 0;
  std::size_t optimizer_state = 0;
  std::size_t activations = 0;  ///< peak of the arena, recompute as planned
  std::size_t batches = 0;      ///< token ids and tables
  std::size_t workspaces = 0;   ///< of matrix products; those of other kernels are among the activations
  std::size_t host = 0;         ///< beside device memory: state and buffers in the host's
  std::int64_t results = 0;     ///< of functions inside of blocks that backward needs
  std::int64_t results_recomputed = 0;
  double recomputed_flops_per_token = 0.0;  ///< of the largest micro-batch, and as if it were one document

  [[nodiscard]] std::size_t total() const {
    return weights + gradients + optimizer_state + activations + batches + workspaces;
  }
};

}  // namespace superoffload::train
