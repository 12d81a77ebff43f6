// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace superoffload::comm {

// The collective operations, as structs of arguments that define the result. Arrays are in device memory, or
// in host memory that the device copies fast. Every rank queues the same operations with the same sizes in
// the same order. Sizes may be 0.

/// to[r] = rank r's `from`.
struct all_gather {
  void const* from = nullptr;  ///< [bytes]; may be its own part of `to`
  void* to = nullptr;          ///< [ranks, bytes]
  std::size_t bytes = 0;       ///< of one rank
};

/// The ranks are in groups of `group` consecutive ones. to[i] = part [own index in the group] of `from` of
/// the group's rank i. All groups exchange at once, with the same sizes.
struct all_to_all {
  void const* from = nullptr;  ///< [group, bytes]
  void* to = nullptr;          ///< [group, bytes], must not overlap `from`
  std::size_t bytes = 0;       ///< of one part
  int group = 1;               ///< divides the number of ranks

  /// The first rank of the group that `rank` is in.
  [[nodiscard]] constexpr int first_rank(int rank) const noexcept { return rank / group * group; }
};

/// to (+)= the sum over the ranks r of from[own rank] of rank r: in the order of the ranks, in wide<From>,
/// what `to` holds added last, rounded once.
template <element From, element To = From>
  requires std::same_as<wide<From>, wide<To>>
struct reduce_scatter {
  From const* from = nullptr;  ///< [ranks, count]
  To* to = nullptr;            ///< [count], must not overlap `from`
  std::int64_t count = 0;      ///< of one rank
  bool accumulate = false;     ///< add to what `to` holds
  void* scratch = nullptr;     ///< the communicator's scratch_bytes() for these sizes, aligned to 256
};

}  // namespace superoffload::comm
