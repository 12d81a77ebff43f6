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

/// Which activations a micro-batch keeps in `memory` bytes of device memory, if the largest one offloads
/// `of_largest` there. A smaller one offloads less, and recomputes less where nothing leaves the device: the
/// choice changes no bit. Takes some dry passes.
template <element T, device_policy D>
autograd::activation_checkpointing kept_within(D const& device, model::as_view<D, T> const& model,
                                               batch_shape const& shape,
                                               std::vector<autograd::activation> const& activations,
                                               std::size_t memory,
                                               autograd::activation_offloading const& of_largest) {
  auto const peak_of = [&](autograd::activation_checkpointing const& kept) {
    return dry_pass<T>(device, model, shape, kept);
  };
  if (of_largest.buffers > 0) {
    auto const offloaded = [&](int buffers) {
      return recompute::offloaded(activations, D::flops_per_byte, {buffers, of_largest.kept});
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
  return recompute::fit(activations, D::flops_per_byte, memory, peak_of);
}

/// Which activations each micro-batch keeps. The memory of activations holds the largest micro-batch, with
/// what the plan keeps of it. A smaller one keeps as many as fit that memory, if its choice adapts.
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
        largest_{options.largest_batch()},
        bytes_{largest.allocation.activations},
        offloading_{largest.offloading},
        adapts_{recompute::adapts(options.recompute) &&
                (largest.allocation.results_recomputed > 0 || offloading_.buffers > 0)},
        of_largest_{largest.checkpointing, largest.allocation.recomputed_flops_per_token} {}

  /// For a micro-batch of `rows` tokens on this rank. The first call for a size takes some dry passes. The
  /// reference stays valid.
  choice const& of(std::int64_t rows) {
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

private:
  [[nodiscard]] choice fit(batch_shape const& shape) const {
    std::vector<autograd::activation> all;
    dry_pass<T>(*device_, model_, shape, {}, &all);
    choice made{kept_within<T>(*device_, model_, shape, all, bytes_, offloading_)};
    made.recomputed_flops_per_token = recomputed_flops(all, made.kept) / static_cast<double>(shape.rows);
    return made;
  }

  D const* device_;
  model::view<D, T> model_;
  batch_shape largest_;
  std::size_t bytes_;
  autograd::activation_offloading offloading_;
  bool adapts_;
  choice of_largest_;
  std::map<std::int64_t, choice> of_sizes_;
};

}  // namespace superoffload::train
