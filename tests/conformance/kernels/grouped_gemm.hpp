// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/grouped_gemm.hpp>

#include "conformance/kernels/lab.hpp"

#include <numeric>

namespace superoffload::conformance {

inline std::vector<std::int32_t> starts_of(std::vector<std::int32_t> const& rows) {
  std::vector<std::int32_t> starts{0};
  for (auto const count : rows) { starts.push_back(starts.back() + count); }
  return starts;
}

/// Groups with these numbers of rows, for GEMMs of [rows, k] and [k, n].
struct grouped_case {
  std::vector<std::int32_t> rows;
  std::int64_t n, k;
};

template <element T, device_policy D>
void check_grouped_gemm(lab<D>& in, grouped_case const& c, bool transpose_b, bool with_bias) {
  auto const starts = starts_of(c.rows);
  auto const groups = std::ssize(c.rows);
  std::int64_t const rows = starts.back();
  auto const a = in.template normal<T>(rows * c.k);
  auto const b = in.template normal<T>(groups * c.k * c.n);
  auto const bias = in.template normal<T>(groups * c.n);
  array<D, std::int32_t> const device_starts{in, starts};
  array<D, T> const device_a{in, a};
  array<D, T> const device_b{in, b};
  array<D, T> const device_bias{in, bias};
  array<D, T> const device_c{in, rows * c.n};
  launch(in.stream, kernel::grouped_gemm<T>{.of = {device_starts.data(), groups, rows},
                                            .a = device_a.data(),
                                            .b = device_b.data(),
                                            .c = device_c.data(),
                                            .n = c.n,
                                            .k = c.k,
                                            .transpose_b = transpose_b,
                                            .bias = with_bias ? device_bias.data() : nullptr});
  std::vector<double> expected, magnitude;
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t i = starts[group]; i < starts[group + 1]; ++i) {
      for (std::int64_t j = 0; j < c.n; ++j) {
        double sum = with_bias ? double{bias[group * c.n + j]} : 0.0;
        double size = std::abs(sum);
        for (std::int64_t l = 0; l < c.k; ++l) {
          double const term = double{a[i * c.k + l]} *
                              double{b[group * c.k * c.n + (transpose_b ? j * c.k + l : l * c.n + j)]};
          sum += term;
          size += std::abs(term);
        }
        expected.push_back(sum);
        magnitude.push_back(size);
      }
    }
  }
  check_near(device_c.values(), expected, magnitude, 4 + std::sqrt(static_cast<double>(c.k)), "grouped_gemm");
}

/// c.k is the number of columns of the left matrix here.
template <element T, element Out, device_policy D>
void check_grouped_outer(lab<D>& in, grouped_case const& c, bool accumulate) {
  auto const starts = starts_of(c.rows);
  auto const groups = std::ssize(c.rows);
  std::int64_t const rows = starts.back();
  auto const a = in.template normal<T>(rows * c.k);
  auto const b = in.template normal<T>(rows * c.n);
  auto const before = in.template normal<Out>(groups * c.k * c.n);
  array<D, std::int32_t> const device_starts{in, starts};
  array<D, T> const device_a{in, a};
  array<D, T> const device_b{in, b};
  array<D, Out> const device_c{in, before};
  launch(in.stream, kernel::grouped_outer<T, Out>{.of = {device_starts.data(), groups, rows},
                                                  .a = device_a.data(),
                                                  .b = device_b.data(),
                                                  .c = device_c.data(),
                                                  .m = c.k,
                                                  .n = c.n,
                                                  .accumulate = accumulate});
  std::vector<double> expected, magnitude;
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t i = 0; i < c.k; ++i) {
      for (std::int64_t j = 0; j < c.n; ++j) {
        double sum = accumulate ? double{before[(group * c.k + i) * c.n + j]} : 0.0;
        double size = std::abs(sum);
        for (std::int64_t row = starts[group]; row < starts[group + 1]; ++row) {
          double const term = double{a[row * c.k + i]} * double{b[row * c.n + j]};
          sum += term;
          size += std::abs(term);
        }
        expected.push_back(sum);
        magnitude.push_back(size);
      }
    }
  }
  check_near(device_c.values(), expected, magnitude, 4 + std::sqrt(static_cast<double>(rows)),
             "grouped_outer");
}

template <element T, element Out, device_policy D>
void check_grouped_column_sum(lab<D>& in, std::vector<std::int32_t> const& group_rows, std::int64_t columns,
                              bool accumulate) {
  auto const starts = starts_of(group_rows);
  auto const groups = std::ssize(group_rows);
  std::int64_t const rows = starts.back();
  auto const x = in.template normal<T>(rows * columns);
  auto const before = in.template normal<Out>(groups * columns);
  array<D, std::int32_t> const device_starts{in, starts};
  array<D, T> const device_x{in, x};
  array<D, Out> const device_out{in, before};
  launch(in.stream, kernel::grouped_column_sum<T, Out>{.of = {device_starts.data(), groups, rows},
                                                       .x = device_x.data(),
                                                       .out = device_out.data(),
                                                       .columns = columns,
                                                       .accumulate = accumulate});
  std::vector<double> expected(before.begin(), before.end());
  if (!accumulate) {
    std::fill(expected.begin(), expected.end(), 0.0);
  }
  auto size = absolute(expected);
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t i = starts[group] * columns; i < starts[group + 1] * columns; ++i) {
      auto const at = static_cast<std::size_t>(group * columns + i % columns);
      expected[at] += double{x[i]};
      size[at] += std::abs(double{x[i]});
    }
  }
  check_near(device_out.values(), expected, size, 4 + std::sqrt(static_cast<double>(rows)),
             "grouped_column_sum");
}

template <device_policy D>
void check_grouped_gemm(lab<D>& in) {
  grouped_case const cases[] = {{{0}, 3, 5},
                                {{0, 4, 0}, 5, 3},
                                {{1}, 1, 1},
                                {{2, 0, 7, 1}, 33, 17},
                                {{70, 0, 0, 3, 129, 64}, 40, 72},
                                {{0, 300}, 65, 130}};
  for (auto const& c : cases) {
    for (bool const flag : {false, true}) {
      for (bool const transpose_b : {false, true}) {
        check_grouped_gemm<float>(in, c, transpose_b, flag);
        check_grouped_gemm<bfloat16>(in, c, transpose_b, flag);
        check_grouped_gemm<double>(in, c, transpose_b, flag);
      }
      check_grouped_outer<float, float>(in, c, flag);
      check_grouped_outer<bfloat16, bfloat16>(in, c, flag);
      check_grouped_outer<bfloat16, float>(in, c, flag);
      check_grouped_outer<double, double>(in, c, flag);
      check_grouped_column_sum<float, float>(in, c.rows, c.n, flag);
      check_grouped_column_sum<bfloat16, bfloat16>(in, c.rows, c.n, flag);
      check_grouped_column_sum<bfloat16, float>(in, c.rows, c.n, flag);
      check_grouped_column_sum<double, double>(in, c.rows, c.n, flag);
    }
  }
}

}  // namespace superoffload::conformance
