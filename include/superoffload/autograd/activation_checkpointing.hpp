// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace superoffload::autograd {

/// The work of running a function: FLOPs of GEMMs, of attention, of grouped GEMMs and of FP8 GEMMs,
/// bytes of device memory that other kernels read and write, and bytes for other ranks.
struct work {
  double flops = 0.0;      ///< of GEMMs
  double attention = 0.0;  ///< FLOPs of attention, of visible pairs alone
  double bytes = 0.0;      ///< of device memory, read and written by all other kernels
  double grouped = 0.0;    ///< FLOPs of grouped GEMMs, those of experts
  double float8 = 0.0;     ///< FLOPs of GEMMs of numbers of 8 bits
  double exchanged = 0.0;  ///< bytes that go to the ranks that share the rows, as many as come from them

  /// FLOPs of all kinds, without regard to their different rates.
  [[nodiscard]] double all_flops() const { return flops + attention + grouped + float8; }
};

/// A function inside a block, listed by a dry forward: the bytes of its results and the work of recomputing
/// them. Functions that work in place are kept or recomputed with their input and are not listed.
struct activation {
  int unit = 0;           ///< whose block it is in
  int index = 0;          ///< in the order of the block's forward
  std::size_t bytes = 0;  ///< of device memory that dropping its results frees until the backward
  work recompute{};       ///< what the backward runs again if the results are dropped
  work again{};           ///< what the function's own backward runs again in any case
  bool result = false;    ///< is it the block's result? That is always kept
};

/// Offloading of activations: blocks take turns in buffers of device memory, for the results that they keep.
/// A block's results are copied to the host before another block takes its buffer, and back ahead of its
/// backward.
struct activation_offloading {
  /// On the device. 0: nothing is offloaded. At least 2, since a backward reads the result of the block
  /// before; with a third one it computes while the next results are copied.
  int buffers = 0;
  /// How many functions of each block keep their results, beside the block's result: those that cost most to
  /// recompute for their bytes. -1: all of them.
  int kept = -1;

  /// Compares both.
  friend bool operator==(activation_offloading const&, activation_offloading const&) = default;
};

/// The buffers of activation_offloading for a micro-batch.
struct activation_buffers {
  int count = 0;          ///< 0: every block keeps its results in memory of its own
  std::size_t bytes = 0;  ///< of each: what the block that keeps most keeps
  int blocks = 0;         ///< that take turns

  /// The blocks whose results leave the device: the first ones. Those of the others are still in their
  /// buffers when the backward begins.
  [[nodiscard]] int leaving() const noexcept { return count == 0 ? 0 : std::max(0, blocks - count); }
  /// Bytes of device memory, in which the buffers lie one behind the other.
  [[nodiscard]] std::size_t device_bytes() const noexcept { return static_cast<std::size_t>(count) * bytes; }
  /// Where the buffer of a block begins there: block b has buffer b modulo their number.
  [[nodiscard]] std::size_t offset_of(int block) const noexcept {
    return static_cast<std::size_t>(block % count) * bytes;
  }
  /// Bytes of host memory.
  [[nodiscard]] std::size_t host_bytes() const noexcept {
    return static_cast<std::size_t>(leaving()) * bytes;
  }
};

/// Which functions of which block keep their results from forward to backward, and whether blocks take turns
/// in buffers for them. The other functions are recomputed when the block's backward begins. By default
/// everything is kept, in memory of its own.
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

  /// @{
  /// Where blocks keep their results.
  [[nodiscard]] activation_buffers const& buffers() const noexcept { return buffers_; }
  void take_turns(activation_buffers const& buffers) { buffers_ = buffers; }
  /// @}

private:
  void set(activation const& a, bool dropped);

  std::vector<std::vector<bool>> dropped_;
  activation_buffers buffers_;
};

}  // namespace superoffload::autograd

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/autograd/impl/activation_checkpointing_inl.hpp>
#endif
