// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/gemm.hpp>
#include <superoffload/cpu/kernels/reduction.hpp>
#include <superoffload/kernel/grouped_gemm.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// The GEMM of one group.
template <element T>
kernel::gemm<T> gemm_of(kernel::grouped_gemm<T> const& a, int64_t group) {
  int64_t const start = a.of.starts[group];
  return {.a = a.a + start * a.k,
          .b = a.b + group * a.k * a.n,
          .c = a.c + start * a.n,
          .m = a.of.starts[group + 1] - start,
          .n = a.n,
          .k = a.k,
          .transpose_b = a.transpose_b,
          .bias = a.bias == nullptr ? nullptr : a.bias + group * a.n};
}
template <element T, element Out>
kernel::gemm<T, Out> gemm_of(kernel::grouped_outer<T, Out> const& a, int64_t group) {
  int64_t const start = a.of.starts[group];
  return {.a = a.a + start * a.m,
          .b = a.b + start * a.n,
          .c = a.c + group * a.m * a.n,
          .m = a.m,
          .n = a.n,
          .k = a.of.starts[group + 1] - start,
          .transpose_a = true,
          .accumulate = a.accumulate};
}

/// The groups' GEMMs one behind the other.
template <class Arguments>
int64_t items_of_groups(Arguments const& a) {
  int64_t count = 0;
  for (int64_t group = 0; group < a.of.groups; ++group) { count += items(gemm_of(a, group)); }
  return count;
}
template <class Arguments>
void run_groups(Arguments const& a, int64_t first, int64_t last) {
  int64_t before = 0;
  for (int64_t group = 0; group < a.of.groups && before < last; ++group) {
    auto const product = gemm_of(a, group);
    auto const own = items(product);
    auto const from = first > before ? first - before : 0;
    auto const to = last - before < own ? last - before : own;
    if (from < to) {
      run(product, from, to);
    }
    before += own;
  }
}

template <element T>
int64_t items(kernel::grouped_gemm<T> const& a) {
  return items_of_groups(a);
}
template <element T>
void run(kernel::grouped_gemm<T> const& a, int64_t first, int64_t last) {
  run_groups(a, first, last);
}
template <element T, element Out>
int64_t items(kernel::grouped_outer<T, Out> const& a) {
  return items_of_groups(a);
}
template <element T, element Out>
void run(kernel::grouped_outer<T, Out> const& a, int64_t first, int64_t last) {
  run_groups(a, first, last);
}

template <element T, element Out>
int64_t items(kernel::grouped_column_sum<T, Out> const& a) {
  return a.of.groups * pieces_of(a.columns, columns_of_sum);
}
template <element T, element Out>
void run(kernel::grouped_column_sum<T, Out> const& a, int64_t first, int64_t last) {
  auto const pieces = pieces_of(a.columns, columns_of_sum);
  for (auto item = first; item < last; ++item) {
    auto const group = item / pieces;
    int64_t const start = a.of.starts[group];
    run(kernel::column_sum<T, Out>{a.x + start * a.columns, a.out + group * a.columns,
                                   a.of.starts[group + 1] - start, a.columns, a.accumulate},
        item % pieces, item % pieces + 1);
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
