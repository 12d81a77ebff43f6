// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::autograd {

/// The work of running a function: FLOPs of GEMMs, of attention and of grouped GEMMs, and bytes of device
/// memory that other kernels read and write.
struct work {
  double flops = 0.0;      ///< of GEMMs
  double attention = 0.0;  ///< FLOPs of attention, of visible pairs alone
  double bytes = 0.0;      ///< of device memory, read and written by all other kernels
  double grouped = 0.0;    ///< FLOPs of grouped GEMMs, those of experts

  /// FLOPs of all kinds, without regard to their different rates.
  [[nodiscard]] double all_flops() const { return flops + attention + grouped; }
};

/// A function inside a block, listed by a dry forward: the bytes of its results and the work of recomputing
/// them. Functions that work in place are kept or recomputed with their input and are not listed.
struct activation {
  int unit = 0;           ///< whose block it is in
  int index = 0;          ///< in the order of the block's forward
  std::size_t bytes = 0;  ///< of device memory that dropping its results frees until the backward
  work recompute{};       ///< what the backward runs again
  bool result = false;    ///< is it the block's result? That is always kept
};

/// Which functions of which block keep their results from forward to backward. The others are recomputed when
/// the block's backward begins. By default everything is kept.
class activation_checkpointing {
public:
  /// Whether function `index` of the block of `unit`, in the order of its forward, keeps its results.
  [[nodiscard]] bool keeps(int unit, int index) const noexcept {
    auto const u = static_cast<std::size_t>(unit);
    auto const i = static_cast<std::size_t>(index);
    return u >= dropped_.size() || i >= dropped_[u].size() || !dropped_[u][i];
  }

  /// Keeps a function's results, as is the default.
  void keep(activation const& a) { set(a, false); }
  /// Drops a function's results, unless they are the block's result: that is the input of the next block.
  void drop(activation const& a) { set(a, !a.result); }

private:
  void set(activation const& a, bool dropped) {
    auto const u = static_cast<std::size_t>(a.unit);
    auto const i = static_cast<std::size_t>(a.index);
    if (dropped_.size() <= u) {
      dropped_.resize(u + 1);
    }
    if (dropped_[u].size() <= i) {
      dropped_[u].resize(i + 1);
    }
    dropped_[u][i] = dropped;
  }

  std::vector<std::vector<bool>> dropped_;
};

}  // namespace superoffload::autograd
