// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/kernel/dropout.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <element T>
int64_t items(kernel::dropout_add<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}

template <element T>
void run(kernel::dropout_add<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  static_assert(elements_of_item % 4 == 0);  // an item begins with a draw
  auto const [begin, end] = range_of(first, last, elements_of_item, a.count);
  auto const factor = a.mask.template factor<W>();
  for (auto i = begin; i < end;) {
    auto const drawn = a.mask.draw(0, static_cast<std::uint64_t>(i / 4));
    for (int j = 0; j < 4 && i < end; ++j, ++i) {
      auto const kept = a.mask.keeps(drawn, j) ? static_cast<W>(a.x[i]) * factor : W{0};
      a.out[i] = static_cast<T>(a.addend == nullptr ? kept : static_cast<W>(a.addend[i]) + kept);
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
