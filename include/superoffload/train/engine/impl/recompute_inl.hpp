// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <vector>

namespace superoffload::recompute {
namespace detail {

/// How many bytes of device memory are read in the time in which one byte goes to another rank: NVLink has
/// some 150 GB/s of HBM's 3000.
inline constexpr double exchange_cost = 20.0;

/// The time to recompute, as bytes of device memory.
SUPEROFFLOAD_INLINE double cost_of(autograd::work const& w, double flops_per_byte) {
  return w.all_flops() / flops_per_byte + w.bytes + exchange_cost * w.exchanged;
}

}  // namespace detail

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
    return detail::cost_of(a.recompute, flops_per_byte) / static_cast<double>(a.bytes);
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

SUPEROFFLOAD_INLINE int most_kept(std::vector<autograd::activation> const& activations) {
  int most = 0;
  for (auto const& a : activations) { most = std::max(most, a.result ? 0 : a.index + 1); }
  return most;
}

SUPEROFFLOAD_INLINE autograd::activation_checkpointing offloaded(
    std::vector<autograd::activation> const& activations, double flops_per_byte,
    autograd::activation_offloading const& how) {
  // All blocks keep the same functions, so that their buffers have one size. `index`: of a function, its cost
  // and bytes in all blocks.
  struct sums {
    int index;
    double cost = 0.0, bytes = 0.0;
  };
  std::vector<sums> order(static_cast<std::size_t>(most_kept(activations)));
  for (std::size_t i = 0; i < order.size(); ++i) { order[i].index = static_cast<int>(i); }
  for (auto const& a : activations) {
    if (!a.result) {
      auto& sum = order[static_cast<std::size_t>(a.index)];
      sum.cost += detail::cost_of(a.recompute, flops_per_byte);
      sum.bytes += static_cast<double>(a.bytes);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](sums const& a, sums const& b) { return a.cost * b.bytes > b.cost * a.bytes; });
  auto const kept = how.kept < 0 ? order.size() : std::min(order.size(), static_cast<std::size_t>(how.kept));
  std::vector<bool> keeps(order.size());
  for (std::size_t i = 0; i < kept; ++i) { keeps[static_cast<std::size_t>(order[i].index)] = true; }
  autograd::activation_checkpointing r;
  std::map<int, std::size_t> bytes;  // by unit
  for (auto const& a : activations) {
    bool const stays = a.result || keeps[static_cast<std::size_t>(a.index)];
    if (!stays) {
      r.drop(a);
    }
    bytes[a.unit] += stays ? a.bytes : 0;
  }
  std::size_t most = 0;
  for (auto const& [unit, kept_bytes] : bytes) { most = std::max(most, kept_bytes); }
  auto const blocks = static_cast<int>(bytes.size());
  r.take_turns({std::clamp(how.buffers, std::min(2, blocks), blocks), most, blocks});
  return r;
}

}  // namespace superoffload::recompute
