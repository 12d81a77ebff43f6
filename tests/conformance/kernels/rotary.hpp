// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/rotary.hpp>

#include "conformance/kernels/lab.hpp"

namespace superoffload::conformance {

/// `behind` elements follow the turned heads in each row. `turned`: elements of a head, 0: all.
template <element T, device_policy D>
void check_rotary(lab<D>& in, std::int64_t rows, std::int32_t heads, std::int32_t head_dim, bool inverse,
                  std::int64_t behind = 3, std::int32_t turned = 0) {
  using W = wide<T>;
  std::int32_t const table = 50;
  turned = turned > 0 ? turned : head_dim;
  auto const half = turned / 2;
  auto const stride = std::int64_t{heads} * head_dim + behind;
  auto const x = in.template normal<T>(rows * stride);
  auto const cosines = in.template normal<W>(std::int64_t{table} * half);
  auto const sines = in.template normal<W>(std::int64_t{table} * half);
  auto const positions = in.integers(rows, 0, table - 1);
  array<D, T> const device_x{in, x};
  array<D, W> const device_cosines{in, cosines};
  array<D, W> const device_sines{in, sines};
  array<D, std::int32_t> const device_positions{in, positions};
  launch(in.stream, kernel::rotary<T>{.x = device_x.data(),
                                      .positions = device_positions.data(),
                                      .cosines = device_cosines.data(),
                                      .sines = device_sines.data(),
                                      .rows = rows,
                                      .stride = stride,
                                      .heads = heads,
                                      .head_dim = head_dim,
                                      .turned = turned,
                                      .inverse = inverse});
  std::vector<double> expected(x.begin(), x.end());
  std::vector<double> size(x.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int32_t head = 0; head < heads; ++head) {
      for (std::int32_t j = 0; j < half; ++j) {
        auto const low = static_cast<std::size_t>(row * stride + head * head_dim + j);
        auto const high = low + static_cast<std::size_t>(half);
        auto const cosine = double{cosines[positions[row] * half + j]};
        auto const sine = double{sines[positions[row] * half + j]} * (inverse ? -1 : 1);
        expected[low] = double{x[low]} * cosine - double{x[high]} * sine;
        expected[high] = double{x[high]} * cosine + double{x[low]} * sine;
        size[low] = std::abs(double{x[low]} * cosine) + std::abs(double{x[high]} * sine);
        size[high] = std::abs(double{x[high]} * cosine) + std::abs(double{x[low]} * sine);
      }
    }
  }
  check_near(device_x.values(), expected, size, 4, "rotary");
}

template <element T, device_policy D>
void check_rotary_of(lab<D>& in) {
  for (bool const inverse : {false, true}) {
    check_rotary<T>(in, 0, 2, 8, inverse);
    check_rotary<T>(in, 1, 1, 2, inverse);
    check_rotary<T>(in, 33, 3, 10, inverse);
    check_rotary<T>(in, 70, 5, 64, inverse);
    check_rotary<T>(in, 9, 7, 48, inverse, 16);
    check_rotary<T>(in, 5, 1, 16, inverse, 0);
    check_rotary<T>(in, 33, 3, 10, inverse, 3, 4);
    check_rotary<T>(in, 70, 5, 128, inverse, 128, 96);  // Phi-4-mini
    check_rotary<T>(in, 9, 7, 36, inverse, 4, 32);
  }
}

template <device_policy D>
void check_rotary(lab<D>& in) {
  check_rotary_of<float>(in);
  check_rotary_of<bfloat16>(in);
  check_rotary_of<double>(in);
}

}  // namespace superoffload::conformance
