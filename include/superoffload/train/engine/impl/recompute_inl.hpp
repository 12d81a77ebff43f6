// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <algorithm>
#include <numeric>

namespace superoffload::recompute {

SUPEROFFLOAD_INLINE autograd::activation_checkpointing inputs_only(
    std::vector<autograd::activation> const& activations) {
  autograd::activation_checkpointing r;
  for (auto const& a : activations) { r.drop(a); }
  return r;
}

SUPEROFFLOAD_INLINE autograd::activation_checkpointing fit(
    std::vector<autograd::activation> const& activations, double flops_per_byte, std::size_t budget,
    std::function<std::size_t(autograd::activation_checkpointing const&)> const& peak_of) {
  // Among equals, later blocks come first: the peak is in their backward, which needs their activations
  // whether they are kept or recomputed.
  std::vector<std::size_t> order(activations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto const worth = [&](std::size_t i) {
    auto const& a = activations[i];
    return (a.recompute.all_flops() / flops_per_byte + a.recompute.bytes) / static_cast<double>(a.bytes);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    double const left = worth(a), right = worth(b);
    return left != right ? left > right : activations[a].unit > activations[b].unit;
  });
  auto const keeping = [&](std::size_t count) {
    auto r = inputs_only(activations);
    for (std::size_t i = 0; i < count; ++i) { r.keep(activations[order[i]]); }
    return r;
  };
  // The peak grows with the number of kept activations: bisect.
  std::size_t fits = 0, too_many = order.size() + 1;
  while (too_many - fits > 1) {
    auto const middle = fits + (too_many - fits) / 2;
    (peak_of(keeping(middle)) <= budget ? fits : too_many) = middle;
  }
  return keeping(fits);
}

}  // namespace superoffload::recompute
