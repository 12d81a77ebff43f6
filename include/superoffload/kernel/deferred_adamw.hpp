// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/adamw.hpp>

#include <cstdint>

// AdamW on state in host memory, with a whole master that is stored apart from the working weights. The
// weights that a step gives may be sent to the device before it is known whether the step counts; the state
// is written afterwards.
//
//   update             a step of which everything is known
//   speculate          only the weights that the step would give; the state is unchanged
//   commit             the state of a speculated step: `pending` is its gradient, `record` holds its scalars
//   commit_speculate   a commit, then a speculate of the next step, in one pass
//   commit_update      a commit, then an update, in one pass
//
// All of them apply kernel::adamw_rule, and write any NaN as 0x7FC00000. A speculate and its commit give the
// bits of an update, and an update those of kernel::adamw. Host state next to its working weights (a split
// master) is updated by kernel::adamw itself.
//
// Arrays are flat, of `count` elements, and do not overlap, with one exception: `weight` may be the memory of
// a gradient that is not needed afterwards: `gradient` in update, `pending` in commit_speculate, either one
// in commit_update. `weight` receives bfloat16::of_master of the master, or, for float, the master. Slices of
// the arguments are independent, so that several threads share a kernel by cpu::run of their slices.
namespace superoffload::kernel {

/// An AdamW step of which everything is known: it writes state and weights.
template <element T>
struct adamw_update {
  float* master;       ///< read and written
  float* m;            ///< read and written
  float* v;            ///< read and written
  T const* gradient;   ///< of this step
  T* weight;           ///< overwritten with the new working weights; may be `gradient`
  std::int64_t count;  ///< elements of each array
  adamw_step step;     ///< the scalars, with the clip factor

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_update slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, gradient + first, weight + first, size, step};
  }
};

/// The working weights that an AdamW step would give. The state stays as it is.
template <element T>
struct adamw_speculate {
  float const* master;  ///< before the step
  float const* m;       ///< before the step
  float const* v;       ///< before the step
  T const* gradient;    ///< of this step; the commit needs it again
  T* weight;            ///< overwritten with the new working weights
  std::int64_t count;   ///< elements of each array
  adamw_step step;      ///< the scalars, with the clip factor that is expected

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_speculate slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, gradient + first, weight + first, size, step};
  }
};

/// The state of a step whose weights adamw_speculate computed. Weights are not written.
template <element T>
struct adamw_commit {
  float* master;       ///< read and written
  float* m;            ///< read and written
  float* v;            ///< read and written
  T const* pending;    ///< the gradient of the speculated step
  std::int64_t count;  ///< elements of each array
  adamw_step record;   ///< the scalars of that step, with the clip factor

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_commit slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, size, record};
  }
};

/// adamw_commit of one step, then adamw_speculate of the next, with the same bits but one pass over memory.
template <element T>
struct adamw_commit_speculate {
  float* master;       ///< read, and written by the commit
  float* m;            ///< read, and written by the commit
  float* v;            ///< read, and written by the commit
  T const* pending;    ///< the gradient of the committed step
  T const* gradient;   ///< the gradient of the next step; the next commit needs it again
  T* weight;           ///< overwritten with the working weights after the next step; may be `pending`
  std::int64_t count;  ///< elements of each array
  adamw_step record,   ///< the scalars of the committed step
      step;            ///< of the next step

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_commit_speculate slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, gradient + first, weight + first,
            size,           record,    step};
  }
};

/// adamw_commit of one step, then adamw_update with the next, with the same bits but one pass over memory.
template <element T>
struct adamw_commit_update {
  float* master;       ///< read and written; holds the result of both steps
  float* m;            ///< read and written
  float* v;            ///< read and written
  T const* pending;    ///< the gradient of the committed step
  T const* gradient;   ///< the gradient of the next step
  T* weight;           ///< overwritten with the working weights after the next step; may be either gradient
  std::int64_t count;  ///< elements of each array
  adamw_step record,   ///< the scalars of the committed step
      step;            ///< of the next step

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_commit_update slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, gradient + first, weight + first,
            size,           record,    step};
  }
};

/// The working weights of the masters as they are, resent after a step that was withdrawn.
template <element T>
struct resend_weights {
  float const* master;  ///< not changed
  T* weight;            ///< overwritten: bfloat16::of_master of the master, or the master itself
  std::int64_t count;   ///< elements of each array

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr resend_weights slice(std::int64_t first, std::int64_t size) const {
    return {master + first, weight + first, size};
  }
};

}  // namespace superoffload::kernel
