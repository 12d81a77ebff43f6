// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/embedding.hpp>

#include <cstring>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T>
int64_t items(kernel::embedding_forward<T> const& a) {
  return pieces_of(a.rows, rows_of_item(a.columns));
}

template <element T>
void run(kernel::embedding_forward<T> const& a, int64_t first, int64_t last) {
  auto const [begin, end] = range_of(first, last, rows_of_item(a.columns), a.rows);
  for (auto row = begin; row < end && a.columns > 0; ++row) {
    std::memcpy(a.out + row * a.columns, a.table + a.ids[row] * a.columns,
                static_cast<std::size_t>(a.columns) * sizeof(T));
  }
}

/// Columns of a segment that one item sums.
inline constexpr int64_t columns_of_segment = 512;

template <element T, element G>
int64_t items(kernel::embedding_backward<T, G> const& a) {
  return a.segments * pieces_of(a.columns, columns_of_segment);
}

template <element T, element G>
void run(kernel::embedding_backward<T, G> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const pieces = pieces_of(a.columns, columns_of_segment);
  for (auto item = first; item < last; ++item) {
    auto const segment = item / pieces;
    if (a.segment_ids[segment] == a.ignored) {
      continue;
    }
    auto const [begin, end] = range_of(item % pieces, item % pieces + 1, columns_of_segment, a.columns);
    W sums[columns_of_segment]{};
    for (auto entry = a.starts[segment]; entry < a.starts[segment + 1]; ++entry) {
      auto const* const d_out = a.d_out + a.order[entry] * a.columns + begin;
      for_vectors<W>(end - begin, [&](int64_t i, auto extent) {
        store(sums + i, load<W>(sums + i, extent) + load<W>(d_out + i, extent), extent);
      });
    }
    auto* const gradient = a.gradient + a.segment_ids[segment] * a.columns + begin;
    for_vectors<W>(end - begin, [&](int64_t i, auto extent) {
      store(gradient + i, load<W>(gradient + i, extent) + load<W>(sums + i, extent), extent);
    });
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
