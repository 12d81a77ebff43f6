// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace superoffload::comm {

/// to[i] (+)= parts[0][i] + parts[1][i] + ..., in this order and in wide<From>, what `to` holds added last,
/// rounded once. There is at least one part; each is [count] of From at an aligned address. `to` overlaps
/// none of them.
template <element From, element To>
  requires std::same_as<wide<From>, wide<To>>
void sum_in_order(std::span<std::byte const* const> parts, To* to, std::int64_t count, bool accumulate);

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/sum_inl.hpp>
#endif
