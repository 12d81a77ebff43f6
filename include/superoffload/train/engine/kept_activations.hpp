// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/data/row_sizes.hpp>
#include <superoffload/model/view.hpp>
#include <superoffload/train/engine/allocation.hpp>
#include <superoffload/train/engine/dry_pass.hpp>
#include <superoffload/train/engine/engine_memory.hpp>
#include <superoffload/train/engine/engine_options.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace superoffload::train {

/// Which activations each micro-batch keeps. The memory of activations holds the largest micro-batch, with
/// what the plan keeps of it. Where recompute is automatic, a smaller one keeps as many as fit that memory:
/// the choice changes no bit.
template <device_policy D, element T>
class kept_activations {
public:
  /// What the blocks of a micro-batch keep, and what their backward computes again.
  struct choice {
    autograd::activation_checkpointing kept;  ///< the kept ones
    double recomputed_flops_per_token = 0.0;  ///< of the others
  };

  /// `largest`: the choice for the largest micro-batch, and the memory. The device must outlive this.
  kept_activations(D const& device, model::view<D, T> model, engine_options const& options,
                   engine_memory const& largest)
      : device_{&device},
        model_{model},
        largest_{options.max_rows, options.max_positions},
        bytes_{largest.allocation.activations},
        adapts_{options.recompute == recompute::choice::automatic &&
                largest.allocation.results_recomputed > 0},
        of_largest_{largest.checkpointing, largest.allocation.recomputed_flops_per_token} {}

  /// For a micro-batch of `rows` tokens. The first call for a size takes some dry passes. The reference stays
  /// valid.
  choice const& of(std::int64_t rows) {
    auto const size = data::rounded_rows(rows, largest_.rows);
    if (!adapts_ || size == largest_.rows) {
      return of_largest_;
    }
    auto const [at, is_new] = of_sizes_.try_emplace(size);
    if (is_new) {
      at->second = fit({size, largest_.positions});
    }
    return at->second;
  }

private:
  [[nodiscard]] choice fit(batch_shape const& shape) const {
    std::vector<autograd::activation> all;
    dry_pass<T>(*device_, model_, shape, {}, &all);
    choice made{recompute::fit(all, D::flops_per_byte, bytes_,
                               [&](auto const& kept) { return dry_pass<T>(*device_, model_, shape, kept); })};
    made.recomputed_flops_per_token = recomputed_flops(all, made.kept) / static_cast<double>(shape.rows);
    return made;
  }

  D const* device_;
  model::view<D, T> model_;
  batch_shape largest_;
  std::size_t bytes_;
  bool adapts_;
  choice of_largest_;
  std::map<std::int64_t, choice> of_sizes_;
};

}  // namespace superoffload::train
