// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/expert_swiglu.hpp>

#include "conformance/kernels/lab.hpp"

#include <numeric>

namespace superoffload::conformance {

template <element T, device_policy D>
void check_expert_swiglu(lab<D>& in, kernel::expert_gate gate, std::int64_t rows, std::int64_t columns,
                         bool in_place) {
  auto gate_up = in.template normal<T>(rows * 2 * columns, 4);
  if (rows > 0 && columns > 8) {
    for (std::size_t const i : {0, 1, 2, 3, 4, 5}) {
      double const extreme[] = {-30, 80, -1000, 1e4, 7, -7};
      gate_up[i] = rounded<T>(extreme[i]);
    }
  }
  auto const weights = in.template normal<wide<T>>(rows);
  auto const d_out = in.template normal<T>(rows * columns);
  std::vector<std::int32_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), in.random);
  array<D, T> const device_gate_up{in, gate_up};
  array<D, wide<T>> const device_weights{in, weights};
  array<D, std::int32_t> const device_order{in, order};
  array<D, T> const device_out{in, rows * columns};
  launch(in.stream,
         kernel::expert_swiglu_forward<T>{gate, device_gate_up.data(), device_weights.data(),
                                          device_order.data(), device_out.data(), rows, columns, 7.0});
  auto const out = device_out.values();
  array<D, T> const device_d_out{in, d_out};
  array<D, T> const separate_d{in, rows * 2 * columns};
  array<D, T> const separate_out{in, rows * columns};
  array<D, wide<T>> const device_d_weights{in, rows};
  auto const& device_d = in_place ? device_gate_up : separate_d;
  auto const& device_again = in_place ? device_d_out : separate_out;
  launch(in.stream,
         kernel::expert_swiglu_backward<T>{gate, device_d_out.data(), device_gate_up.data(),
                                           device_weights.data(), device_order.data(), device_d.data(),
                                           device_again.data(), device_d_weights.data(), rows, columns, 7.0});
  std::vector<double> expected, size, d(gate_up.size()), d_size(gate_up.size()), d_weights(weights.size()),
      d_weights_size(weights.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    auto const choice = static_cast<std::size_t>(order[row]);
    double const weight = weights[choice];
    for (std::int64_t column = 0; column < columns; ++column) {
      bool const silu = gate == kernel::expert_gate::silu;
      auto const gate_at = static_cast<std::size_t>(2 * row * columns + (silu ? column : 2 * column));
      auto const up_at = gate_at + static_cast<std::size_t>(silu ? columns : 1);
      double const g = silu ? double{gate_up[gate_at]} : std::min(double{gate_up[gate_at]}, 7.0);
      double const u = silu ? double{gate_up[up_at]} : std::clamp(double{gate_up[up_at]}, -7.0, 7.0) + 1;
      double const slope = silu ? 1 : 1.702;
      double const sigmoid = 1 / (1 + std::exp(-slope * g));
      double const d_in = d_out[row * columns + column];
      expected.push_back(g * sigmoid * u * weight);
      size.push_back(std::abs(weight * g * sigmoid) * (std::abs(u) + 1) * (1 + std::abs(g)));
      d_weights[choice] += d_in * g * sigmoid * u;
      d_weights_size[choice] += std::abs(d_in * g * sigmoid) * (std::abs(u) + 1) * (1 + std::abs(g));
      if (silu || double{gate_up[gate_at]} <= 7) {
        d[gate_at] = weight * d_in * u * sigmoid * (1 + slope * g * (1 - sigmoid));
        d_size[gate_at] = std::abs(weight * d_in * sigmoid) * (std::abs(u) + 1) * (1 + g * g);
      }
      if (silu || std::abs(double{gate_up[up_at]}) <= 7) {
        d[up_at] = weight * d_in * g * sigmoid;
        d_size[up_at] = std::abs(d[up_at]) * (1 + std::abs(g));
      }
    }
  }
  check_near(out, expected, size, 20, "expert_swiglu_forward");
  check_near(device_d.values(), d, d_size, 40, "expert_swiglu_backward");
  check_near(device_d_weights.values(), d_weights, d_weights_size, 40 + std::sqrt(double(columns)),
             "expert_swiglu_backward's weights");
  CHECK(device_again.values() == out);
}

template <device_policy D>
void check_expert_swiglu(lab<D>& in) {
  for (auto const gate : {kernel::expert_gate::silu, kernel::expert_gate::clamped}) {
    for (std::int64_t const rows : {0, 1, 37}) {
      for (std::int64_t const columns : {1, 33, 1030}) {
        for (bool const in_place : {false, true}) {
          check_expert_swiglu<float>(in, gate, rows, columns, in_place);
          check_expert_swiglu<bfloat16>(in, gate, rows, columns, in_place);
          check_expert_swiglu<double>(in, gate, rows, columns, in_place);
        }
      }
    }
  }
}

}  // namespace superoffload::conformance
