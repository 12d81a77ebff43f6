// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/cuda/stream.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace superoffload::nccl {

/// to (+)= part 0 + part 1 + ... of `ranks` parts: in this order in wide<From>, what `to` holds added last,
/// rounded once. Parts are [count] and overlap `to` nowhere.
template <element From, element To>
  requires std::same_as<wide<From>, wide<To>>
struct sum_of_parts {
  std::byte const* others;    ///< all parts, or all but one, in their order
  std::size_t part_bytes;     ///< from one of them to the next
  From const* own = nullptr;  ///< the one that is not there
  int rank = 0;               ///< its place
  int ranks;
  To* to;
  std::int64_t count;
  bool accumulate = false;
};

/// Queues it: float and bfloat16 to each other and to themselves, double. Defined in sum.cuh.
template <element From, element To>
void launch(cuda::stream& on, sum_of_parts<From, To> const& a);

}  // namespace superoffload::nccl
