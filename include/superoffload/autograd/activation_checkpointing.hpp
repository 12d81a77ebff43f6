// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::autograd {

/// What running a function takes: FLOPs of matrix products, of attention and of products by groups of rows,
/// and bytes of device memory read and written beside these.
struct work {
  double flops = 0.0;
  double attention = 0.0;
  double bytes = 0.0;
  double grouped = 0.0;

  [[nodiscard]] double all_flops() const { return flops + attention + grouped; }
};

/// A function inside of a block, as a dry forward meets it: what keeping its results costs and what running
/// it again does. Functions that work in place share the fate of their input and are not listed.
struct activation {
  int unit = 0;
  int index = 0;  ///< in the order of the block's forward
  std::size_t bytes = 0;
  work recompute{};
  bool result = false;  ///< of the block: always kept
};

/// Which functions of which block keep their results from forward to backward; the others are run again when
/// the block's backward begins. Everything is kept until told otherwise.
class activation_checkpointing {
public:
  [[nodiscard]] bool keeps(int unit, int index) const noexcept {
    auto const u = static_cast<std::size_t>(unit);
    auto const i = static_cast<std::size_t>(index);
    return u >= dropped_.size() || i >= dropped_[u].size() || !dropped_[u][i];
  }

  void keep(activation const& a) { set(a, false); }
  /// The result of a block stays: it is the input of the next.
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
