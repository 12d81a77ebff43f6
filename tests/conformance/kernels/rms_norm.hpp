// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/rms_norm.hpp>

#include "conformance/kernels/lab.hpp"

namespace superoffload::conformance {

template <element T, device_policy D>
void check_rms_norm(lab<D>& in, std::int64_t rows, std::int64_t columns, bool accumulate) {
  using W = wide<T>;
  double const epsilon = 1e-5;
  auto const x = in.template normal<T>(rows * columns, 2);
  auto const weight = in.template normal<T>(columns);
  auto const d_y = in.template normal<T>(rows * columns);
  auto const before = in.template normal<T>(rows * columns);
  array<D, T> const device_x{in, x};
  array<D, T> const device_weight{in, weight};
  array<D, T> const device_y{in, rows * columns};
  array<D, W> const device_inverse{in, rows};
  launch(in.stream, kernel::rms_norm_forward<T>{.x = device_x.data(),
                                                .weight = device_weight.data(),
                                                .y = device_y.data(),
                                                .inverse_rms = device_inverse.data(),
                                                .rows = rows,
                                                .columns = columns,
                                                .epsilon = epsilon});
  array<D, T> const device_d_y{in, d_y};
  array<D, T> const accumulated{in, before};
  auto const& device_d_x = accumulate ? accumulated : device_d_y;  // in place when it may be
  array<D, W> const device_partial{in, kernel::rms_norm_blocks(rows) * columns};
  launch(in.stream,
         kernel::rms_norm_backward<T>{.d_y = device_d_y.data(),
                                      .x = device_x.data(),
                                      .weight = device_weight.data(),
                                      .inverse_rms = device_inverse.data(),
                                      .d_x = device_d_x.data(),
                                      .partial = accumulate && rows == 5 ? nullptr : device_partial.data(),
                                      .rows = rows,
                                      .columns = columns,
                                      .accumulate = accumulate});
  auto const inverse = device_inverse.values();
  auto const cells = static_cast<std::size_t>(rows * columns);
  std::vector<double> y(cells), d_x(cells), d_x_size(cells), expected_inverse;
  std::vector<double> partial(static_cast<std::size_t>(kernel::rms_norm_blocks(rows) * columns));
  std::vector<double> partial_size(partial.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    double squares = 0;
    double mean = 0;
    double mean_size = 0;
    double const factor = inverse[row];
    for (auto i = row * columns; i < (row + 1) * columns; ++i) {
      squares += double{x[i]} * double{x[i]};
      auto const term = double{d_y[i]} * double{weight[i % columns]} * double{x[i]} * factor;
      mean += term / static_cast<double>(columns);
      mean_size += std::abs(term) / static_cast<double>(columns);
    }
    auto const exact = 1 / std::sqrt((columns == 0 ? 0 : squares / static_cast<double>(columns)) + epsilon);
    expected_inverse.push_back(exact);
    for (std::int64_t column = 0; column < columns; ++column) {
      auto const i = static_cast<std::size_t>(row * columns + column);
      auto const n = double{x[i]} * factor;
      auto const d = double{d_y[i]} * double{weight[column]};
      y[i] = double{x[i]} * exact * double{weight[column]};
      d_x[i] = factor * (d - n * mean) + (accumulate ? double{before[i]} : 0);
      d_x_size[i] =
          factor * (std::abs(d) + std::abs(n) * mean_size) + (accumulate ? std::abs(double{before[i]}) : 0);
      auto const cell = static_cast<std::size_t>(row / kernel::rms_norm_block_rows(rows) * columns + column);
      partial[cell] += double{d_y[i]} * n;
      partial_size[cell] += std::abs(double{d_y[i]} * n);
    }
  }
  check_near(device_y.values(), y, absolute(y), 20, "rms_norm: y");
  check_near(inverse, expected_inverse, expected_inverse, 20, "rms_norm: inverse_rms");
  check_near(device_d_x.values(), d_x, d_x_size, 30, "rms_norm: d_x");
  if (!(accumulate && rows == 5)) {
    check_near(device_partial.values(), partial, partial_size, 30, "rms_norm: partial");
  }
}

template <element T, device_policy D>
void check_rms_norm_of(lab<D>& in) {
  for (bool const accumulate : {false, true}) {
    for (std::int64_t const rows : {0, 1, 5, 131}) {
      for (std::int64_t const columns : {0, 1, 16, 77}) { check_rms_norm<T>(in, rows, columns, accumulate); }
    }
  }
}

template <device_policy D>
void check_rms_norm(lab<D>& in) {
  check_rms_norm_of<float>(in);
  check_rms_norm_of<bfloat16>(in);
  check_rms_norm_of<double>(in);
}

}  // namespace superoffload::conformance
