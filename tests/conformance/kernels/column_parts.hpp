// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/column_parts.hpp>

#include "conformance/kernels/lab.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace superoffload::conformance {

/// Splits a matrix of distinct numbers and joins it again, both compared element by element.
template <element T, device_policy D>
void check_column_parts(lab<D>& in, std::int64_t rows, std::int32_t parts,
                        std::array<std::int64_t, 3> const& widths) {
  auto const part_columns = widths[0] + widths[1] + widths[2];
  auto const columns = parts * part_columns;
  std::vector<T> matrix(static_cast<std::size_t>(rows * columns)), split(matrix.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) { matrix[i] = T(static_cast<float>(i % 251)); }
  std::size_t next = 0;
  for (std::int64_t p = 0; p < parts; ++p) {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t segment = 0;
      for (auto const width : widths) {
        for (std::int64_t i = 0; i < width; ++i) {
          split[next++] = matrix[static_cast<std::size_t>(row * columns + segment + p * width + i)];
        }
        segment += parts * width;
      }
    }
  }
  array<D, T> const from{in, matrix};
  array<D, T> const parted{in, rows * columns};
  array<D, T> const joined{in, rows * columns};
  auto const size = static_cast<std::int64_t>(sizeof(T));
  std::array<std::int64_t, 3> const bytes{widths[0] * size, widths[1] * size, widths[2] * size};
  launch(in.stream,
         kernel::column_parts{
             .from = from.data(), .to = parted.data(), .piece_bytes = bytes, .rows = rows, .parts = parts});
  launch(in.stream, kernel::column_parts{.from = parted.data(),
                                         .to = joined.data(),
                                         .piece_bytes = bytes,
                                         .rows = rows,
                                         .parts = parts,
                                         .joins = true});
  auto const same = [](std::vector<T> const& a, std::vector<T> const& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](T x, T y) { return static_cast<double>(x) == static_cast<double>(y); });
  };
  CAPTURE(rows);
  CAPTURE(parts);
  CHECK(same(parted.values(), split));
  CHECK(same(joined.values(), matrix));
}

template <device_policy D>
void check_column_parts(lab<D>& in) {
  for (std::int64_t const rows : {0, 1, 3, 130}) {
    for (std::int32_t const parts : {1, 2, 4}) {
      check_column_parts<bfloat16>(in, rows, parts, {16, 8, 8});
      check_column_parts<bfloat16>(in, rows, parts, {3, 1, 1});
      check_column_parts<float>(in, rows, parts, {300, 0, 0});
      check_column_parts<double>(in, rows, parts, {6, 2, 2});
    }
  }
}

}  // namespace superoffload::conformance
