// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/reduction.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Columns that one item sums: as many accumulators as stay in the first cache.
inline constexpr int64_t columns_of_sum = 512;

template <element T, element Out>
int64_t items(kernel::column_sum<T, Out> const& a) {
  return pieces_of(a.columns, columns_of_sum);
}

template <element T, element Out>
void run(kernel::column_sum<T, Out> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  for (auto item = first; item < last; ++item) {
    auto const [begin, end] = range_of(item, item + 1, columns_of_sum, a.columns);
    W sums[columns_of_sum]{};
    for (int64_t row = 0; row < a.rows; ++row) {
      auto const* const x = a.x + row * a.columns + begin;
      for_vectors<W>(end - begin, [&](int64_t i, auto extent) {
        store(sums + i, load<W>(sums + i, extent) + load<W>(x + i, extent), extent);
      });
    }
    auto* const out = a.out + begin;
    for_vectors<W>(end - begin, [&](int64_t i, auto extent) {
      auto total = load<W>(sums + i, extent);
      if (a.accumulate) {
        total = load<W>(out + i, extent) + total;
      }
      store(out + i, total, extent);
    });
  }
}

/// The sum of value(0) .. value(count - 1) in double: `ways` interleaved sums, then those pairwise. The order
/// is part of the contract between processors, so it is written out and not left to a vector's width.
template <class Value>
[[gnu::always_inline]] inline double interleaved_sum(int64_t count, Value const& value) {
  constexpr int ways = 16;
  double sums[ways]{};
  int64_t i = 0;
  for (; i + ways <= count; i += ways) {
    for (int way = 0; way < ways; ++way) { sums[way] += value(i + way); }
  }
  for (int way = 0; i + way < count; ++way) { sums[way] += value(i + way); }
  for (int half = ways / 2; half > 0; half /= 2) {
    for (int way = 0; way < half; ++way) { sums[way] += sums[way + half]; }
  }
  return sums[0];
}

template <element T>
int64_t items(kernel::sum<T> const&) {
  return 1;
}

template <element T>
void run(kernel::sum<T> const& a, int64_t, int64_t) {
  auto const total =
      interleaved_sum(a.count, [values = a.values](int64_t i) { return static_cast<double>(values[i]); });
  *a.total = a.accumulate ? *a.total + total : total;
}

template <element T, element From>
int64_t items(kernel::square_sum<T, From> const& a) {
  return kernel::norm_cells(a.count);
}

template <element T, element From>
void run(kernel::square_sum<T, From> const& a, int64_t first, int64_t last) {
  for (auto cell = first; cell < last; ++cell) {
    auto const [begin, end] = range_of(cell, cell + 1, kernel::norm_grid, a.count);
    a.partial[cell] = interleaved_sum(end - begin, [x = a.x + begin](int64_t i) {
      auto const value = static_cast<double>(static_cast<T>(x[i]));
      return value * value;
    });
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
