// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// out = a + b in wide<T>, rounded once; out may be a or b.
template <element T>
struct add {
  T const* a;          ///< [count]
  T const* b;          ///< [count]
  T* out;              ///< [count]; may be a or b
  std::int64_t count;  ///< elements; may be 0
};

/// to = from, or to += from; the sum is in the wider type and rounded once.
template <element From, element To>
struct convert {
  From const* from;         ///< [count]
  To* to;                   ///< may be `from` itself when the types are the same
  std::int64_t count;       ///< elements; may be 0
  bool accumulate = false;  ///< add to what `to` holds
};

}  // namespace superoffload::kernel
