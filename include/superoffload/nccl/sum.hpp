// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/cuda/stream.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace superoffload::nccl {

/// to (+)= part 0 + part 1 + ... of `ranks` parts: in this order, in wide<From>, what `to` holds added last,
/// rounded once. Parts are [count] and do not overlap `to`.
template <element From, element To>
  requires std::same_as<wide<From>, wide<To>>
struct sum_of_parts {
  std::byte const* others;    ///< all parts, or all but one, in order
  std::size_t part_bytes;     ///< from one part to the next
  From const* own = nullptr;  ///< the part that is not in `others`
  int rank = 0;               ///< its rank
  int ranks;                  ///< parts in all, `own` included
  To* to;                     ///< [count]
  std::int64_t count;         ///< elements of a part
  bool accumulate = false;    ///< add to what `to` holds
};

/// Queues the kernel: float and bfloat16 in any combination, double to double. Defined in sum.cuh.
template <element From, element To>
void launch(cuda::stream& on, sum_of_parts<From, To> const& a);

}  // namespace superoffload::nccl
