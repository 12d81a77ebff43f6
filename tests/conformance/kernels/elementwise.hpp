// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/elementwise.hpp>

#include "conformance/kernels/adamw.hpp"
#include "conformance/kernels/lab.hpp"

namespace superoffload::conformance {

/// Rounded once, to nearest, ties to even.
template <class To>
double nearest(double x) {
  if constexpr (std::same_as<To, bfloat16>) {
    if (!std::isfinite(x) || x == 0) {
      return x;
    }
    int exponent = 0;
    std::frexp(x, &exponent);
    auto const unit = std::ldexp(1.0, std::max(exponent - 8, -133));
    return std::nearbyint(x / unit) * unit;
  } else {
    return double{static_cast<To>(x)};
  }
}

template <class From, class To, device_policy D>
void check_convert(lab<D>& in, std::int64_t count, bool accumulate) {
  auto const from = in.template normal<From>(count, 3);
  auto const before = in.template normal<To>(count, 3);
  array<D, From> const device_from{in, from};
  array<D, To> const device_to{in, before};
  launch(in.stream,
         kernel::convert<From, To>{
             .from = device_from.data(), .to = device_to.data(), .count = count, .accumulate = accumulate});
  auto const to = device_to.values();
  for (std::size_t i = 0; i < to.size(); ++i) {
    auto const sum = accumulate ? double{before[i]} + double{from[i]} : double{from[i]};
    // A sum of two floats is rounded to float first.
    auto const expected = std::same_as<From, double> || std::same_as<To, double>
                              ? nearest<To>(sum)
                              : nearest<To>(double{static_cast<float>(sum)});
    if (double{to[i]} != expected) {
      FAIL_CHECK("element ", i, " is ", double{to[i]}, ", expected ", expected);
      break;
    }
  }
}

template <element T, device_policy D>
void check_add(lab<D>& in, std::int64_t count, bool in_place) {
  auto const a = in.template normal<T>(count);
  auto const b = in.template normal<T>(count);
  array<D, T> const device_a{in, a};
  array<D, T> const device_b{in, b};
  array<D, T> const device_out{in, count};
  auto const& out = in_place ? device_b : device_out;
  launch(in.stream,
         kernel::add<T>{.a = device_a.data(), .b = device_b.data(), .out = out.data(), .count = count});
  std::vector<double> expected;
  for (std::size_t i = 0; i < a.size(); ++i) { expected.push_back(double{a[i]} + double{b[i]}); }
  check_near(out.values(), expected, std::vector<double>(a.size()), 0, "add");
}

/// Every pattern of the upper half, on both sides of and at the tie; NaN stays NaN.
template <device_policy D>
void check_rounding(lab<D>& in) {
  std::vector<float> from;
  for (std::uint32_t high = 0; high <= 0xFFFF; ++high) {
    for (std::uint32_t const low : {0x0000U, 0x7FFFU, 0x8000U, 0x8001U}) {
      from.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  array<D, float> const device_from{in, from};
  array<D, bfloat16> const device_to{in, std::ssize(from)};
  launch(in.stream, kernel::convert<float, bfloat16>{
                        .from = device_from.data(), .to = device_to.data(), .count = std::ssize(from)});
  auto const to = device_to.values();
  bool same = true;
  for (std::size_t i = 0; i < to.size(); ++i) { same = same && to[i].bits == bfloat16{from[i]}.bits; }
  CHECK(same);
}

template <element T, device_policy D>
void check_elementwise_of(lab<D>& in) {
  for (std::int64_t const count : {0, 1, 15, 16, 33, 40007}) {
    for (bool const flag : {false, true}) {
      check_add<T>(in, count, flag);
      check_convert<T, bfloat16>(in, count, flag);
      check_convert<T, float>(in, count, flag);
      check_convert<T, double>(in, count, flag);
    }
  }
}

template <device_policy D>
void check_elementwise(lab<D>& in) {
  check_elementwise_of<float>(in);
  check_elementwise_of<bfloat16>(in);
  check_elementwise_of<double>(in);
  check_rounding(in);
}

}  // namespace superoffload::conformance
