// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/gemm.hpp>

#include "conformance/kernels/lab.hpp"

namespace superoffload::conformance {

struct gemm_case {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b, accumulate, bias, addend;
};

template <element T, element Out, device_policy D>
void check_gemm(lab<D>& in, gemm_case const& c) {
  auto const a = in.template normal<T>(c.m * c.k);
  auto const b = in.template normal<T>(c.k * c.n);
  auto const bias = in.template normal<T>(c.n);
  auto const addend = in.template normal<T>(c.m * c.n);
  auto const before = in.template normal<Out>(c.m * c.n);
  array<D, T> const device_a{in, a};
  array<D, T> const device_b{in, b};
  array<D, T> const device_bias{in, bias};
  array<D, T> const device_addend{in, addend};
  array<D, Out> const device_c{in, before};
  launch(in.stream, kernel::gemm<T, Out>{.a = device_a.data(),
                                         .b = device_b.data(),
                                         .c = device_c.data(),
                                         .m = c.m,
                                         .n = c.n,
                                         .k = c.k,
                                         .transpose_a = c.transpose_a,
                                         .transpose_b = c.transpose_b,
                                         .accumulate = c.accumulate,
                                         .bias = c.bias ? device_bias.data() : nullptr,
                                         .addend = c.addend ? device_addend.data() : nullptr});
  std::vector<double> expected;
  std::vector<double> magnitude;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      double size = 0;
      auto const include = [&](double term) {
        sum += term;
        size += std::abs(term);
      };
      for (std::int64_t l = 0; l < c.k; ++l) {
        include(double{a[c.transpose_a ? l * c.m + i : i * c.k + l]} *
                double{b[c.transpose_b ? j * c.k + l : l * c.n + j]});
      }
      if (c.bias) {
        include(bias[j]);
      }
      if (c.addend) {
        include(addend[i * c.n + j]);
      }
      if (c.accumulate) {
        include(before[i * c.n + j]);
      }
      expected.push_back(sum);
      magnitude.push_back(size);
    }
  }
  check_near(device_c.values(), expected, magnitude, 4 + std::sqrt(static_cast<double>(c.k)), "gemm");
}

template <device_policy D>
void check_gemm(lab<D>& in) {
  gemm_case const cases[] = {
      {1, 1, 1, false, false, false, false, false},    {3, 5, 7, false, true, true, true, true},
      {0, 4, 3, false, false, false, false, false},    {4, 0, 3, false, true, false, true, false},
      {5, 3, 0, false, false, true, true, true},       {5, 3, 0, true, true, false, false, false},
      {67, 130, 33, false, true, false, true, false},  {130, 67, 300, true, false, true, false, false},
      {1, 257, 129, false, false, false, false, true}, {193, 1, 300, true, true, false, true, false},
      {60, 70, 513, false, true, true, false, true},   {200, 300, 17, true, true, false, false, true},
      {257, 131, 64, false, false, true, false, false}};
  for (auto const& c : cases) {
    check_gemm<float, float>(in, c);
    check_gemm<bfloat16, bfloat16>(in, c);
    check_gemm<bfloat16, float>(in, c);
    check_gemm<double, double>(in, c);
  }
}

}  // namespace superoffload::conformance
