// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/row_sizes.hpp>
#include <superoffload/train/engine/kept_activations.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace superoffload::train {

SUPEROFFLOAD_INLINE autograd::activation_checkpointing kept_within(
    dry_model const& model, batch_shape const& shape, std::vector<autograd::activation> const& activations,
    std::size_t memory, autograd::activation_offloading const& of_largest) {
  auto const peak_of = [&](autograd::activation_checkpointing const& kept) {
    return model.peak(shape, kept);
  };
  if (of_largest.buffers > 0) {
    auto const offloaded = [&](int buffers) {
      return recompute::offloaded(activations, model.flops_per_byte, {buffers, of_largest.kept});
    };
    auto const least = offloaded(of_largest.buffers).buffers();
    int fits = least.count, too_many = least.blocks + 1;
    while (too_many - fits > 1) {
      int const middle = fits + (too_many - fits) / 2;
      (peak_of(offloaded(middle)) <= memory ? fits : too_many) = middle;
    }
    if (fits < least.blocks) {
      return offloaded(fits);
    }
  }
  return recompute::fit(activations, model.flops_per_byte, memory, peak_of);
}

SUPEROFFLOAD_INLINE kept_activations::kept_activations(dry_model model, engine_options const& options,
                                                       engine_memory const& largest)
    : model_{std::move(model)},
      largest_{options.largest_batch()},
      bytes_{largest.allocation.activations},
      offloading_{largest.offloading},
      adapts_{recompute::adapts(options.recompute) &&
              (largest.allocation.results_recomputed > 0 || offloading_.buffers > 0)},
      of_largest_{largest.checkpointing, largest.allocation.recomputed_flops_per_token} {}

SUPEROFFLOAD_INLINE kept_activations::choice const& kept_activations::of(std::int64_t rows) {
  auto const size = data::rounded_rows(rows, largest_.rows);
  if (!adapts_ || size == largest_.rows) {
    return of_largest_;
  }
  auto const [at, is_new] = of_sizes_.try_emplace(size);
  if (is_new) {
    at->second = fit({size, largest_.positions, largest_.sequence_ranks});
  }
  return at->second;
}

SUPEROFFLOAD_INLINE kept_activations::choice kept_activations::fit(batch_shape const& shape) const {
  auto const all = model_.activations(shape);
  choice made{kept_within(model_, shape, all, bytes_, offloading_)};
  made.recomputed_flops_per_token = recomputed_flops(all, made.kept) / static_cast<double>(shape.rows);
  return made;
}

}  // namespace superoffload::train
