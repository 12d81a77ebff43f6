// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/dropout.hpp>

#include "conformance/kernels/lab.hpp"

namespace superoffload::conformance {

template <element T, device_policy D>
void check_dropout(lab<D>& in, std::int64_t count, double rate, bool with_addend, bool in_place) {
  auto const mask = kernel::dropout_mask::with(rate, 77 + static_cast<std::uint64_t>(count));
  auto const x = in.template normal<T>(count);
  auto const addend = in.template normal<T>(count);
  array<D, T> const device_x{in, x};
  array<D, T> const device_addend{in, addend};
  array<D, T> const elsewhere{in, count};
  auto const& device_out = in_place ? device_x : elsewhere;
  launch(in.stream, kernel::dropout_add<T>{.mask = mask,
                                           .x = device_x.data(),
                                           .addend = with_addend ? device_addend.data() : nullptr,
                                           .out = device_out.data(),
                                           .count = count});
  std::vector<double> expected, size;
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    auto const factor = mask.template of<double>(0, i);
    kept += factor != 0;
    double const before = with_addend ? double{addend[i]} : 0;
    expected.push_back(before + factor * double{x[i]});
    size.push_back(std::abs(before) + factor * std::abs(double{x[i]}));
  }
  check_near(device_out.values(), expected, size, 4, "dropout");
  if (count > 10000) {
    CHECK(static_cast<double>(kept) / static_cast<double>(count) == doctest::Approx(1 - rate).epsilon(0.03));
  }
}

template <element T, device_policy D>
void check_dropout_of(lab<D>& in) {
  check_dropout<T>(in, 0, 0.1, false, false);
  check_dropout<T>(in, 1, 0.5, true, false);
  check_dropout<T>(in, 7, 0.5, false, true);
  check_dropout<T>(in, 40003, 0.1, true, false);
  check_dropout<T>(in, 20000, 0.9, false, true);
  check_dropout<T>(in, 50, 0.0, true, true);
}

template <device_policy D>
void check_dropout(lab<D>& in) {
  check_dropout_of<float>(in);
  check_dropout_of<bfloat16>(in);
  check_dropout_of<double>(in);
}

}  // namespace superoffload::conformance
