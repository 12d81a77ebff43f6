// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/adamw.hpp>

#include <cstdint>

// AdamW on state that lies in host memory with a whole master, away from the working weights: what a step
// gives may be sent out before it is known whether the step counts, and be written to the state afterwards.
//
//   update         a step of which everything is known
//   emit           only the weights that the step would give; the state stays
//   commit         the state of a step whose weights were emitted; `pending` is its gradient and `record` its
//                  numbers, whatever has been set since
//   commit_speculate    both, one after the other, in one pass
//   commit_update  both, one after the other, in one pass
//
// All of them apply kernel::adamw_rule, and write any NaN as 0x7FC00000: emit and then commit give the bits
// of update, and update those of kernel::adamw. State on the host beside the working weights (a split master)
// is updated and committed by kernel::adamw itself.
//
// Arrays are flat, of `count` elements, and do not overlap, but that `weight` may be the memory of a gradient
// that is not needed afterwards: `gradient` in update, `pending` in commit_speculate, either in
// commit_update. `weight` receives bfloat16::of_master of the master, or, for float, the master. Any slice of
// the arguments is work of its own, so that several threads share a kernel by cpu::run of their slices.
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

/// The working weights of masters as they are, resent after a step that did not count.
template <element T>
struct speculate_weights {
  float const* master;
  T* weight;
  std::int64_t count;

  [[nodiscard]] constexpr speculate_weights slice(std::int64_t first, std::int64_t size) const {
    return {master + first, weight + first, size};
  }
};

}  // namespace superoffload::kernel
