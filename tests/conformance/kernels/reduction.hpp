// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/reduction.hpp>

#include "conformance/kernels/lab.hpp"

namespace superoffload::conformance {

template <element T, element Out, device_policy D>
void check_column_sum(lab<D>& in, std::int64_t rows, std::int64_t columns, bool accumulate) {
  auto const x = in.template normal<T>(rows * columns);
  auto const before = in.template normal<Out>(columns);
  array<D, T> const device_x{in, x};
  array<D, Out> const device_out{in, before};
  launch(in.stream, kernel::column_sum<T, Out>{.x = device_x.data(),
                                               .out = device_out.data(),
                                               .rows = rows,
                                               .columns = columns,
                                               .accumulate = accumulate});
  std::vector<double> expected;
  std::vector<double> size;
  for (std::int64_t column = 0; column < columns; ++column) {
    expected.push_back(accumulate ? double{before[column]} : 0);
    size.push_back(std::abs(expected.back()));
    for (std::int64_t row = 0; row < rows; ++row) {
      expected.back() += double{x[row * columns + column]};
      size.back() += std::abs(double{x[row * columns + column]});
    }
  }
  check_near(device_out.values(), expected, size, 4 + std::sqrt(static_cast<double>(rows)), "column_sum");
}

template <element T, device_policy D>
void check_sums(lab<D>& in, std::int64_t count) {
  auto const x = in.template normal<T>(count);
  array<D, T> const device_x{in, x};
  array<D, double> const total{in, std::vector<double>{5.0}};
  array<D, double> const partial{in, kernel::norm_cells(count)};
  launch(in.stream, kernel::sum<T>{.values = device_x.data(), .total = total.data(), .count = count});
  auto const first = total.values();
  launch(
      in.stream,
      kernel::sum<T>{.values = device_x.data(), .total = total.data(), .count = count, .accumulate = true});
  launch(in.stream, kernel::square_sum<T>{.x = device_x.data(), .partial = partial.data(), .count = count});
  double sum = 0;
  double size = 0;
  std::vector<double> squares(static_cast<std::size_t>(kernel::norm_cells(count)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += double{x[i]};
    size += std::abs(double{x[i]});
    squares[i / kernel::norm_grid] += double{x[i]} * double{x[i]};
  }
  check_near(first, {sum}, {size}, 1000, "sum");
  check_near(total.values(), {2 * sum}, {2 * size}, 1000, "sum, accumulated");
  check_near(partial.values(), squares, squares, 1000, "square_sum");
}

/// Numbers in a wider type count as their rounded values, in the same order.
template <device_policy D>
void check_square_sum_of_wide(lab<D>& in, std::int64_t count) {
  auto x = in.template normal<float>(count);
  // Of so many sizes that the sum's rounding shows the order.
  for (std::size_t i = 0; i < x.size(); ++i) { x[i] = std::ldexp(x[i], static_cast<int>(i * 7 % 41) - 20); }
  std::vector<bfloat16> const rounded_x(x.begin(), x.end());
  std::vector<double> squares(static_cast<std::size_t>(kernel::norm_cells(count)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const value = float{rounded_x[i]};
    squares[i / kernel::norm_grid] += value * value;
  }
  array<D, float> const device_x{in, x};
  array<D, bfloat16> const device_rounded_x{in, rounded_x};
  array<D, double> const partial{in, kernel::norm_cells(count)};
  array<D, double> const expected{in, kernel::norm_cells(count)};
  launch(in.stream, kernel::square_sum<bfloat16, float>{
                        .x = device_x.data(), .partial = partial.data(), .count = count});
  launch(in.stream, kernel::square_sum<bfloat16>{
                        .x = device_rounded_x.data(), .partial = expected.data(), .count = count});
  CHECK(partial.values() == expected.values());
  for (std::size_t i = 0; i < squares.size(); ++i) {
    CHECK(partial.values()[i] == doctest::Approx(squares[i]).epsilon(1e-12));
  }
}

template <element T, device_policy D>
void check_not_finite(lab<D>& in) {
  auto const count = kernel::norm_grid + 100;
  for (double const bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    for (auto const at : {std::int64_t{0}, std::int64_t{77}, count - 1}) {
      auto x = in.template normal<T>(count);
      x[static_cast<std::size_t>(at)] = rounded<T>(bad);
      array<D, T> const device_x{in, x};
      array<D, double> const partial{in, 2};
      launch(in.stream,
             kernel::square_sum<T>{.x = device_x.data(), .partial = partial.data(), .count = count});
      auto const sums = partial.values();
      CHECK(std::isfinite(sums[0]) == (at >= kernel::norm_grid));
      CHECK(std::isfinite(sums[1]) == (at < kernel::norm_grid));
    }
  }
}

template <element T, device_policy D>
void check_reduction_of(lab<D>& in) {
  for (bool const accumulate : {false, true}) {
    for (std::int64_t const rows : {0, 1, 37, 300}) {
      for (std::int64_t const columns : {0, 1, 19, 515}) {
        check_column_sum<T, T>(in, rows, columns, accumulate);
      }
    }
  }
  for (std::int64_t const count : {0, 1, 15, 16, 33, 65536, 65537, 140001}) { check_sums<T>(in, count); }
  for (std::int64_t const count : {0, 7, 65541}) { check_square_sum_of_wide(in, count); }
  check_not_finite<T>(in);
}

template <device_policy D>
void check_reduction(lab<D>& in) {
  check_reduction_of<float>(in);
  check_reduction_of<bfloat16>(in);
  check_reduction_of<double>(in);
  check_column_sum<bfloat16, float>(in, 37, 515, true);
  check_column_sum<bfloat16, float>(in, 3, 5, false);
  check_column_sum<float, bfloat16>(in, 37, 515, true);
}

}  // namespace superoffload::conformance
