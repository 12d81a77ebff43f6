// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/head_norm.hpp>

#include "conformance/kernels/lab.hpp"

#include <cmath>

namespace superoffload::conformance {

/// `behind` elements follow the normed heads in each row.
template <element T, device_policy D>
void check_head_norm(lab<D>& in, std::int64_t rows, std::int32_t queries, std::int32_t keys,
                     std::int32_t head_dim, std::int64_t behind, bool with_partial = true) {
  using W = wide<T>;
  double const epsilon = 1e-5;
  std::int32_t const table = 20;
  auto const half = head_dim / 2;
  kernel::head_norm_shape const shape{rows, std::int64_t{queries + keys} * head_dim + behind, queries, keys,
                                      head_dim};
  auto const elements = rows * shape.stride;
  auto const x = in.template normal<T>(elements, 2);
  auto const weight = in.template normal<T>(std::int64_t{2} * head_dim);
  auto const d_y = in.template normal<T>(elements);
  std::vector<W> cosines, sines;
  for (std::int32_t i = 0; i < table * half; ++i) {
    cosines.push_back(static_cast<W>(std::cos(0.1 * i)));
    sines.push_back(static_cast<W>(std::sin(0.1 * i)));
  }
  auto const positions = in.integers(rows, 0, table - 1);
  array<D, T> const device_x{in, x};
  array<D, T> const device_weight{in, weight};
  array<D, T> const device_d{in, d_y};
  array<D, W> const device_cosines{in, cosines};
  array<D, W> const device_sines{in, sines};
  array<D, std::int32_t> const device_positions{in, positions};
  array<D, T> const device_y{in, elements};
  array<D, W> const device_inverse{in, rows * shape.heads()};
  auto const blocks = kernel::rms_norm_blocks(rows);
  array<D, W> const device_partial{in, blocks * 2 * head_dim};
  launch(in.stream, kernel::head_norm_forward<T>{.shape = shape,
                                                 .x = device_x.data(),
                                                 .weight = device_weight.data(),
                                                 .positions = device_positions.data(),
                                                 .cosines = device_cosines.data(),
                                                 .sines = device_sines.data(),
                                                 .y = device_y.data(),
                                                 .inverse_rms = device_inverse.data(),
                                                 .epsilon = epsilon});
  launch(in.stream, kernel::head_norm_backward<T>{.shape = shape,
                                                  .x = device_x.data(),
                                                  .weight = device_weight.data(),
                                                  .positions = device_positions.data(),
                                                  .cosines = device_cosines.data(),
                                                  .sines = device_sines.data(),
                                                  .inverse_rms = device_inverse.data(),
                                                  .d = device_d.data(),
                                                  .partial = with_partial ? device_partial.data() : nullptr});
  auto const inverse = device_inverse.values();
  std::vector<double> y(x.begin(), x.end()), y_size = absolute(y), d_x(d_y.begin(), d_y.end()),
                                             d_x_size = absolute(d_x), expected_inverse;
  std::vector<double> partial(static_cast<std::size_t>(blocks * 2 * head_dim)), partial_size(partial.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int32_t head = 0; head < shape.heads(); ++head) {
      auto const at = row * shape.stride + head * head_dim;
      auto const of_kind = head < queries ? 0 : head_dim;
      double squares = 0;
      for (std::int32_t i = 0; i < head_dim; ++i) { squares += double{x[at + i]} * double{x[at + i]}; }
      double const exact = 1 / std::sqrt(squares / head_dim + epsilon);
      expected_inverse.push_back(exact);
      double const factor = inverse[static_cast<std::size_t>(row * shape.heads() + head)];
      std::vector<double> normed(head_dim), turned(head_dim), turned_size(head_dim);
      double mean = 0, mean_size = 0;
      for (std::int32_t j = 0; j < half; ++j) {
        auto const angle = static_cast<std::size_t>(positions[row] * half + j);
        double const cosine = cosines[angle], sine = sines[angle];
        for (auto const i : {j, j + half}) {
          normed[i] = double{x[at + i]} * factor;
          double const own = double{d_y[at + i]} * cosine;
          double const other = double{d_y[at + (i == j ? j + half : j)]} * sine * (i == j ? 1 : -1);
          turned[i] = own + other;
          turned_size[i] = std::abs(own) + std::abs(other);
          auto const term = double{weight[of_kind + i]} * normed[i] / head_dim;
          mean += turned[i] * term;
          mean_size += turned_size[i] * std::abs(term);
        }
        double const low = double{x[at + j]} * exact * double{weight[of_kind + j]};
        double const high = double{x[at + half + j]} * exact * double{weight[of_kind + half + j]};
        y[at + j] = low * cosine - high * sine;
        y[at + half + j] = high * cosine + low * sine;
        y_size[at + j] = y_size[at + half + j] = std::abs(low) + std::abs(high);
      }
      for (std::int32_t i = 0; i < head_dim; ++i) {
        double const w = weight[of_kind + i];
        d_x[at + i] = factor * (turned[i] * w - normed[i] * mean);
        d_x_size[at + i] = factor * (turned_size[i] * std::abs(w) + std::abs(normed[i]) * mean_size);
        auto const cell =
            static_cast<std::size_t>(row / kernel::rms_norm_block_rows(rows) * 2 * head_dim + of_kind + i);
        partial[cell] += turned[i] * normed[i];
        partial_size[cell] += turned_size[i] * std::abs(normed[i]);
      }
    }
  }
  check_near(device_y.values(), y, y_size, 20, "head_norm: y");
  check_near(inverse, expected_inverse, expected_inverse, 20, "head_norm: inverse_rms");
  check_near(device_d.values(), d_x, d_x_size, 40, "head_norm: d_x");
  if (with_partial) {
    check_near(device_partial.values(), partial, partial_size, 100, "head_norm: partial");
  }
}

template <element T, device_policy D>
void check_head_norm_of(lab<D>& in) {
  check_head_norm<T>(in, 0, 2, 1, 8, 8);
  check_head_norm<T>(in, 1, 1, 1, 2, 0);
  check_head_norm<T>(in, 33, 3, 1, 10, 13);
  check_head_norm<T>(in, 5, 4, 2, 64, 128, false);
  check_head_norm<T>(in, 40, 5, 2, 128, 256);
  check_head_norm<T>(in, 3, 2, 2, 256, 512);
}

template <device_policy D>
void check_head_norm(lab<D>& in) {
  check_head_norm_of<float>(in);
  check_head_norm_of<bfloat16>(in);
  check_head_norm_of<double>(in);
}

}  // namespace superoffload::conformance
