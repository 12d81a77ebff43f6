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
//   next_state         the state and the weights that the step would give, beside a state that is unchanged
//   speculate          only the weights that the step would give; the state is unchanged
//   commit             the state of a speculated step: `pending` is its gradient, `record` holds its scalars
//   commit_speculate   a commit, then a speculate of the next step, in one pass
//   commit_update      a commit, then an update, in one pass
//
// All of them apply kernel::adamw_rule, and write any NaN as 0x7FC00000. The weights of a step are those of
// the master as it is stored; a next step in the same pass begins with the state as it is stored. So a
// speculate and its commit give the bits of an update, and an update those of kernel::adamw. Host state next
// to its working weights (a split master) is updated by kernel::adamw itself.
//
// Arrays are flat, of `count` elements, and do not overlap, with one exception: `weight` may be the memory of
// a gradient that is not needed afterwards: `gradient` in update, `pending` in commit_speculate, either one
// in commit_update. `weight` receives bfloat16::of_master of the master, or, for float, the master. Slices of
// the arguments are independent, so that several threads share a kernel by cpu::run of their slices.
namespace superoffload::kernel {

/// An AdamW step of which everything is known: it writes state and weights.
template <element T, state_format F = state_format::float32>
struct adamw_update {
  masters<T, F> master;    ///< read and written
  moments<F> m;            ///< read and written
  moments<F> v;            ///< read and written
  T const* gradient;       ///< of this step
  T* weight;               ///< overwritten with the new working weights; may be `gradient`
  std::int64_t count;      ///< elements of each array
  adamw_step step;         ///< the scalars, with the clip factor
  std::int64_t index = 0;  ///< of the first element in its unit, for stochastic rounding

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_update slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, gradient + first,
            weight + first, size,      step,      index + first};
  }
};

/// The state and the working weights that an AdamW step would give, written to other arrays. The state stays
/// as it is.
template <element T, state_format F = state_format::float32>
struct adamw_next_state {
  masters<T, F> master;       ///< before the step; not changed
  moments<F> m;               ///< before the step; not changed
  moments<F> v;               ///< before the step; not changed
  T const* gradient;          ///< of this step; a clipped step needs it again
  masters<T, F> next_master;  ///< overwritten with the state after the step
  moments<F> next_m;          ///< likewise
  moments<F> next_v;          ///< likewise
  T* weight;                  ///< overwritten with the new working weights
  std::int64_t count;         ///< elements of each array
  adamw_step step;            ///< the scalars, with the clip factor that is expected
  std::int64_t index = 0;     ///< of the first element in its unit, for stochastic rounding

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_next_state slice(std::int64_t first, std::int64_t size) const {
    return {master + first,
            m + first,
            v + first,
            gradient + first,
            next_master + first,
            next_m + first,
            next_v + first,
            weight + first,
            size,
            step,
            index + first};
  }
};

/// The working weights that an AdamW step would give. The state stays as it is.
template <element T, state_format F = state_format::float32>
struct adamw_speculate {
  masters<T, F> master;    ///< before the step; not changed
  moments<F> m;            ///< before the step; not changed
  moments<F> v;            ///< before the step; not changed
  T const* gradient;       ///< of this step; the commit needs it again
  T* weight;               ///< overwritten with the new working weights
  std::int64_t count;      ///< elements of each array
  adamw_step step;         ///< the scalars, with the clip factor that is expected
  std::int64_t index = 0;  ///< of the first element in its unit, for stochastic rounding

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_speculate slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, gradient + first,
            weight + first, size,      step,      index + first};
  }
};

/// The state of a step whose weights adamw_speculate computed. Weights are not written.
template <element T, state_format F = state_format::float32>
struct adamw_commit {
  masters<T, F> master;    ///< read and written
  moments<F> m;            ///< read and written
  moments<F> v;            ///< read and written
  T const* pending;        ///< the gradient of the speculated step
  std::int64_t count;      ///< elements of each array
  adamw_step record;       ///< the scalars of that step, with the clip factor
  std::int64_t index = 0;  ///< of the first element in its unit, for stochastic rounding

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_commit slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, size, record, index + first};
  }
};

/// adamw_commit of one step, then adamw_speculate of the next, with the same bits but one pass over memory.
template <element T, state_format F = state_format::float32>
struct adamw_commit_speculate {
  masters<T, F> master;    ///< read, and written by the commit
  moments<F> m;            ///< read, and written by the commit
  moments<F> v;            ///< read, and written by the commit
  T const* pending;        ///< the gradient of the committed step
  T const* gradient;       ///< the gradient of the next step; the next commit needs it again
  T* weight;               ///< overwritten with the working weights after the next step; may be `pending`
  std::int64_t count;      ///< elements of each array
  adamw_step record,       ///< the scalars of the committed step
      step;                ///< of the next step
  std::int64_t index = 0;  ///< of the first element in its unit, for stochastic rounding

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_commit_speculate slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, gradient + first, weight + first,
            size,           record,    step,      index + first};
  }
};

/// adamw_commit of one step, then adamw_update with the next, with the same bits but one pass over memory.
template <element T, state_format F = state_format::float32>
struct adamw_commit_update {
  masters<T, F> master;  ///< read and written; holds the result of both steps
  moments<F> m;          ///< read and written
  moments<F> v;          ///< read and written
  T const* pending;      ///< the gradient of the committed step
  T const* gradient;     ///< the gradient of the next step
  T* weight;             ///< overwritten with the working weights after the next step; may be either gradient
  std::int64_t count;    ///< elements of each array
  adamw_step record,     ///< the scalars of the committed step
      step;              ///< of the next step
  std::int64_t index = 0;  ///< of the first element in its unit, for stochastic rounding

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr adamw_commit_update slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, gradient + first, weight + first,
            size,           record,    step,      index + first};
  }
};

/// The working weights of the masters as they are, resent after a step that was withdrawn.
template <element T, state_format F = state_format::float32>
struct resend_weights {
  masters<T, F> master;  ///< not changed
  T* weight;             ///< overwritten: bfloat16::of_master of the master, or the master itself
  std::int64_t count;    ///< elements of each array

  /// The kernel for elements `first` to `first + size - 1`.
  [[nodiscard]] constexpr resend_weights slice(std::int64_t first, std::int64_t size) const {
    return {master + first, weight + first, size};
  }
};

}  // namespace superoffload::kernel
