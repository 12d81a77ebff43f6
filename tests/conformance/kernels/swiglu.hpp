// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/swiglu.hpp>

#include "conformance/kernels/lab.hpp"

namespace superoffload::conformance {

template <element T, device_policy D>
void check_swiglu(lab<D>& in, std::int64_t rows, std::int64_t columns, bool in_place) {
  auto gate_up = in.template normal<T>(rows * 2 * columns, 4);
  if (rows > 0 && columns > 8) {
    for (std::size_t const i : {0, 1, 2, 3}) {
      double const extreme[] = {-30, 80, -1000, 1e4};
      gate_up[i] = rounded<T>(extreme[i]);
    }
  }
  auto const d_out = in.template normal<T>(rows * columns);
  array<D, T> const device_gate_up{in, gate_up};
  array<D, T> const device_out{in, rows * columns};
  array<D, T> const device_d_out{in, d_out};
  array<D, T> const separate{in, rows * 2 * columns};
  auto const& device_d = in_place ? device_gate_up : separate;
  array<D, T> const separate_again{in, rows * columns};
  auto const& device_again = in_place ? device_d_out : separate_again;
  launch(in.stream,
         kernel::swiglu_forward<T>{
             .gate_up = device_gate_up.data(), .out = device_out.data(), .rows = rows, .columns = columns});
  auto const out = device_out.values();
  launch(in.stream, kernel::swiglu_backward<T>{.d_out = device_d_out.data(),
                                               .gate_up = device_gate_up.data(),
                                               .d_gate_up = device_d.data(),
                                               .out = device_again.data(),
                                               .rows = rows,
                                               .columns = columns});
  std::vector<double> expected, d(gate_up.size()), size(gate_up.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      auto const gate_at = static_cast<std::size_t>(2 * row * columns + column);
      auto const up_at = gate_at + static_cast<std::size_t>(columns);
      double const gate = gate_up[gate_at];
      double const up = gate_up[up_at];
      double const gradient = d_out[row * columns + column];
      double const sigmoid = 1 / (1 + std::exp(-gate));
      expected.push_back(gate * sigmoid * up);
      d[gate_at] = gradient * up * sigmoid * (1 + gate * (1 - sigmoid));
      size[gate_at] = std::abs(gradient * up * sigmoid) * (1 + std::abs(gate));
      d[up_at] = gradient * gate * sigmoid;
      size[up_at] = std::abs(d[up_at]);
    }
  }
  check_near(out, expected, absolute(expected), 8, "swiglu: out");
  check_near(device_d.values(), d, size, 8, "swiglu: d_gate_up");
  auto const again = device_again.values();
  CHECK_MESSAGE((out.empty() || std::memcmp(again.data(), out.data(), out.size() * sizeof(T)) == 0),
                "swiglu: backward's result has other bits than forward's");
}

/// Values that are not finite must stay so: the gradient check depends on it.
template <element T, device_policy D>
void check_swiglu_not_a_number(lab<D>& in) {
  std::int64_t const columns = 37;
  for (std::size_t const at : {0, 5, 36, 37, 73}) {
    auto gate_up = in.template normal<T>(2 * columns);
    gate_up[at] = rounded<T>(std::numeric_limits<double>::quiet_NaN());
    array<D, T> const device_gate_up{in, gate_up};
    array<D, T> const device_out{in, columns};
    launch(in.stream,
           kernel::swiglu_forward<T>{
               .gate_up = device_gate_up.data(), .out = device_out.data(), .rows = 1, .columns = columns});
    auto const out = device_out.values();
    for (std::size_t i = 0; i < out.size(); ++i) {
      CHECK(std::isnan(double{out[i]}) == (i == at % static_cast<std::size_t>(columns)));
    }
  }
}

template <element T, device_policy D>
void check_swiglu_of(lab<D>& in) {
  check_swiglu_not_a_number<T>(in);
  for (std::int64_t const rows : {0, 1, 5, 300}) {
    for (std::int64_t const columns : {0, 1, 9, 77}) { check_swiglu<T>(in, rows, columns, rows % 2 == 1); }
  }
}

template <device_policy D>
void check_swiglu(lab<D>& in) {
  check_swiglu_of<float>(in);
  check_swiglu_of<bfloat16>(in);
  check_swiglu_of<double>(in);
}

}  // namespace superoffload::conformance
