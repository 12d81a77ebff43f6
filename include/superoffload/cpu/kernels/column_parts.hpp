// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/column_parts.hpp>

#include <cstddef>
#include <cstring>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

inline int64_t items(kernel::column_parts const& a) {
  return pieces_of(a.rows, rows_of_item(a.parts * a.row_bytes()));
}

inline void run(kernel::column_parts const& a, int64_t first, int64_t last) {
  auto const [begin, end] = range_of(first, last, rows_of_item(a.parts * a.row_bytes()), a.rows);
  auto const* const from = static_cast<std::byte const*>(a.from);
  auto* const to = static_cast<std::byte*>(a.to);
  for (auto row = begin; row < end; ++row) {
    auto in_matrix = row * a.parts * a.row_bytes();
    int64_t in_part = 0;
    for (auto const bytes : a.piece_bytes) {
      for (int64_t part = 0; part < a.parts; ++part, in_matrix += bytes) {
        auto const there = (part * a.rows + row) * a.row_bytes() + in_part;
        std::memcpy(to + (a.joins ? in_matrix : there), from + (a.joins ? there : in_matrix),
                    static_cast<std::size_t>(bytes));
      }
      in_part += bytes;
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
