// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::zero {

/// Does a store keep the unit's gradient in wide<T>? Its sum is then rounded once, by its reader.
/// `element_bytes`: of a T; `wide_bytes`: of a wide<T>, as many where that is T itself.
inline bool keeps_wide(autograd::unit_layout const& unit, bool accumulates, std::size_t element_bytes,
                       std::size_t wide_bytes) {
  return element_bytes != wide_bytes && (unit.wide_gradient() || accumulates);
}
/// The same for a known T.
template <element T>
bool keeps_wide(autograd::unit_layout const& unit, bool accumulates) {
  return keeps_wide(unit, accumulates, sizeof(T), sizeof(wide<T>));
}

/// Bytes of the unit's flat gradient.
template <element T>
std::size_t gradient_bytes(autograd::unit_layout const& unit, bool accumulates) {
  return static_cast<std::size_t>(unit.elements()) *
         (keeps_wide<T>(unit, accumulates) ? sizeof(wide<T>) : sizeof(T));
}

/// Elements [offset, offset + count) of a unit.
struct unit_range {
  std::int64_t offset,  ///< in elements from the start of the unit
      count;            ///< elements
};

/// The ranges of a gradient that no backward writes and that must be zero: frozen tensors and, with
/// `padding`, the padding between tensors.
std::vector<unit_range> unwritten(autograd::unit_layout const& unit, bool padding);

/// Queues zeros for `ranges` of a unit's flat gradient.
template <element T, class Stream>
void clear(Stream& stream, unit_gradient const& gradient, std::vector<unit_range> const& ranges) {
  auto const size = gradient.is_wide ? sizeof(wide<T>) : sizeof(T);
  for (auto const& range : ranges) {
    stream.fill_zero(static_cast<std::byte*>(gradient.data) + static_cast<std::size_t>(range.offset) * size,
                     static_cast<std::size_t>(range.count) * size);
  }
}

}  // namespace superoffload::zero

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/zero/impl/gradient_layout_inl.hpp>
#endif
