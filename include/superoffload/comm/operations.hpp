// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/division.hpp>
#include <superoffload/core/dtype.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace superoffload::comm {

// The collective operations, as structs of arguments that define the result. Arrays are in device memory, or
// in host memory that the device copies fast. Every rank queues the same operations with the same sizes in
// the same order. Sizes may be 0. An operation joins the `members` ranks of a subset, those of `among`: all
// ranks unless it says otherwise.

/// to[k][i] = run k of member i's `from`.
struct all_gather {
  void const* from = nullptr;  ///< [runs, bytes]; with one run, may be its own part of `to`
  void* to = nullptr;          ///< [runs, members, bytes]
  std::size_t bytes = 0;       ///< of one run
  division among{};            ///< the ranks that join
  int runs = 1;                ///< 1 or more
};

/// to[i] = part [own index] of member i's `from`.
struct all_to_all {
  void const* from = nullptr;  ///< [members, bytes]
  void* to = nullptr;          ///< [members, bytes], must not overlap `from`
  std::size_t bytes = 0;       ///< of one part
  division among{};            ///< the ranks that join
};

/// to[k] (+)= the sum over the members of their from[k][own index]: in the order of the ranks, in wide<From>,
/// what `to` holds added last, rounded once.
template <element From, element To = From>
  requires std::same_as<wide<From>, wide<To>>
struct reduce_scatter {
  From const* from = nullptr;  ///< [runs, members, count]
  To* to = nullptr;            ///< [runs, count], must not overlap `from`
  std::int64_t count = 0;      ///< elements of one run
  bool accumulate = false;     ///< add to what `to` holds
  void* scratch = nullptr;     ///< the communicator's scratch_bytes() for these sizes, aligned to 256
  division among{};            ///< the ranks that join
  int runs = 1;                ///< 1 or more
};

}  // namespace superoffload::comm
