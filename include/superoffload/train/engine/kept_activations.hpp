// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/train/engine/batch_shape.hpp>
#include <superoffload/train/engine/dry_model.hpp>
#include <superoffload/train/engine/engine_memory.hpp>
#include <superoffload/train/engine/engine_options.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace superoffload::train {

/// Which activations a micro-batch keeps in `memory` bytes of device memory, if the largest one offloads
/// `of_largest` there. A smaller one offloads less, and recomputes less where nothing leaves the device: the
/// choice changes no bit. Takes some dry passes.
autograd::activation_checkpointing kept_within(dry_model const& model, batch_shape const& shape,
                                               std::vector<autograd::activation> const& activations,
                                               std::size_t memory,
                                               autograd::activation_offloading const& of_largest);

/// Which activations each micro-batch keeps. The memory of activations holds the largest micro-batch, with
/// what the plan keeps of it. A smaller one keeps as many as fit that memory, if its choice adapts.
class kept_activations {
public:
  /// What the blocks of a micro-batch keep, and what their backward computes again.
  struct choice {
    autograd::activation_checkpointing kept;  ///< the kept ones
    double recomputed_flops_per_token = 0.0;  ///< of the others
  };

  /// `largest`: the choice for the largest micro-batch, and the memory.
  kept_activations(dry_model model, engine_options const& options, engine_memory const& largest);

  /// For a micro-batch of `rows` tokens on this rank. The first call for a size takes some dry passes. The
  /// reference stays valid.
  choice const& of(std::int64_t rows);

private:
  [[nodiscard]] choice fit(batch_shape const& shape) const;

  dry_model model_;
  batch_shape largest_;
  std::size_t bytes_;
  autograd::activation_offloading offloading_;
  bool adapts_;
  choice of_largest_;
  std::map<std::int64_t, choice> of_sizes_;
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/kept_activations_inl.hpp>
#endif
