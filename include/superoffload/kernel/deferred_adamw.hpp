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

template <element T>
struct adamw_update {
  float* master;
  float* m;
  float* v;
  T const* gradient;
  T* weight;
  std::int64_t count;
  adamw_step step;

  [[nodiscard]] constexpr adamw_update slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, gradient + first, weight + first, size, step};
  }
};

template <element T>
struct adamw_speculate {
  float const* master;
  float const* m;
  float const* v;
  T const* gradient;
  T* weight;
  std::int64_t count;
  adamw_step step;

  [[nodiscard]] constexpr adamw_speculate slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, gradient + first, weight + first, size, step};
  }
};

template <element T>
struct adamw_commit {
  float* master;
  float* m;
  float* v;
  T const* pending;
  std::int64_t count;
  adamw_step record;

  [[nodiscard]] constexpr adamw_commit slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, size, record};
  }
};

template <element T>
struct adamw_commit_speculate {
  float* master;
  float* m;
  float* v;
  T const* pending;
  T const* gradient;
  T* weight;
  std::int64_t count;
  adamw_step record, step;

  [[nodiscard]] constexpr adamw_commit_speculate slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, gradient + first, weight + first,
            size,           record,    step};
  }
};

template <element T>
struct adamw_commit_update {
  float* master;
  float* m;
  float* v;
  T const* pending;
  T const* gradient;
  T* weight;
  std::int64_t count;
  adamw_step record, step;

  [[nodiscard]] constexpr adamw_commit_update slice(std::int64_t first, std::int64_t size) const {
    return {master + first, m + first, v + first, pending + first, gradient + first, weight + first,
            size,           record,    step};
  }
};

/// The working weights of the masters as they are, resent after a step that was withdrawn.
template <element T>
struct resend_weights {
  float const* master;
  T* weight;
  std::int64_t count;

  [[nodiscard]] constexpr resend_weights slice(std::int64_t first, std::int64_t size) const {
    return {master + first, weight + first, size};
  }
};

}  // namespace superoffload::kernel
