// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/float8.hpp>

#include "conformance/kernels/lab.hpp"

#include <bit>

namespace superoffload::conformance {

/// A matrix in 8 bits on a device, as the kernels make it.
template <device_policy D>
struct quantized {
  quantized(lab<D>& in, std::vector<bfloat16> const& x, std::int64_t rows, std::int64_t columns)
      : from{in, x},
        largest{in, std::vector<std::uint32_t>(1)},
        out{in, rows * columns},
        transposed{in, columns * kernel::float8_stride(rows)},
        inverse{in, std::int64_t{1}} {
    launch(in.stream, kernel::largest_magnitude{from.data(), largest.data(), rows * columns});
    launch(in.stream, kernel::quantize{.x = from.data(),
                                       .largest = largest.data(),
                                       .out = out.data(),
                                       .transposed = transposed.data(),
                                       .inverse = inverse.data(),
                                       .rows = rows,
                                       .columns = columns,
                                       .stride = kernel::float8_stride(rows)});
  }

  array<D, bfloat16> from;
  array<D, std::uint32_t> largest;
  array<D, float8> out, transposed;
  array<D, float> inverse;
};

/// Numbers of very different sizes; `odd` is one of them.
template <device_policy D>
std::vector<bfloat16> wide_range(lab<D>& in, std::int64_t count, float odd = 0.0F) {
  auto x = in.template normal<bfloat16>(count);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = bfloat16{std::ldexp(float{x[i]}, -static_cast<int>(i * 7 % 23))};
  }
  if (odd != 0.0F && count > 0) {
    x[x.size() / 2] = bfloat16{odd};
  }
  return x;
}

template <device_policy D>
void check_quantize(lab<D>& in, std::int64_t rows, std::int64_t columns, float odd = 0.0F) {
  auto const x = wide_range(in, rows * columns, odd);
  quantized<D> const made{in, x, rows, columns};
  std::uint32_t largest = 0;
  for (auto const value : x) { largest = std::max(largest, std::uint32_t{value.bits & 0x7FFFU} << 16); }
  CHECK(made.largest.values() == std::vector{largest});
  auto const scale = float8_scale::of(largest);
  CHECK(std::bit_cast<std::uint32_t>(made.inverse.values()[0]) ==
        std::bit_cast<std::uint32_t>(scale.inverse));
  auto const out = made.out.values(), transposed = made.transposed.values();
  auto const stride = kernel::float8_stride(rows);
  int wrong = 0;
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < stride; ++r) {
      auto const at = static_cast<std::size_t>(r * columns + c);
      float8 const expected = r < rows ? float8{float{x[at]} * scale.factor} : float8{};
      bool const is_nan = std::isnan(float{expected});
      auto const same = [&](float8 got) {
        return is_nan ? std::isnan(float{got}) : got.bits == expected.bits;
      };
      wrong +=
          same(transposed[static_cast<std::size_t>(c * stride + r)]) && (r >= rows || same(out[at])) ? 0 : 1;
    }
  }
  CHECK_MESSAGE(wrong == 0, "of ", rows, " x ", columns);
}

/// How precise sums are, in roundings of a float. Hopper's tensor cores keep about 14 bits of a sum of FP8
/// products (DeepSeek-V3, arXiv 2412.19437).
template <device_policy D>
double float8_operations(std::int64_t k) {
  double const of_float = 4 + std::sqrt(static_cast<double>(k));
  return D::name() == "cuda" ? of_float + 0x1p12 : of_float;
}

struct float8_case {
  std::int64_t m, n, k;
  bool accumulate, bias, addend;
};

template <element Out, device_policy D>
void check_float8_gemm(lab<D>& in, float8_case const& c) {
  auto const a_values = wide_range(in, c.m * c.k), b_values = wide_range(in, c.n * c.k);
  auto const bias = in.template normal<bfloat16>(c.n), addend = in.template normal<bfloat16>(c.m * c.n);
  auto const before = in.template normal<Out>(c.m * c.n);
  quantized<D> const a{in, a_values, c.m, c.k};
  quantized<D> const b{in, b_values, c.n, c.k};
  array<D, bfloat16> const device_bias{in, bias}, device_addend{in, addend};
  array<D, Out> const device_c{in, before};
  launch(in.stream, kernel::float8_gemm<Out>{.a = a.out.data(),
                                             .b = b.out.data(),
                                             .a_inverse = a.inverse.data(),
                                             .b_inverse = b.inverse.data(),
                                             .c = device_c.data(),
                                             .m = c.m,
                                             .n = c.n,
                                             .k = c.k,
                                             .accumulate = c.accumulate,
                                             .bias = c.bias ? device_bias.data() : nullptr,
                                             .addend = c.addend ? device_addend.data() : nullptr});
  auto const widened = [](auto const& values) { return std::vector<double>(values.begin(), values.end()); };
  auto const left = widened(a.out.values()), right = widened(b.out.values());
  double const scale = double{a.inverse.values()[0]} * double{b.inverse.values()[0]};
  std::vector<double> expected, magnitude;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0, size = 0;
      auto const include = [&](double term) {
        sum += term;
        size += std::abs(term);
      };
      for (std::int64_t l = 0; l < c.k; ++l) {
        include(scale * left[static_cast<std::size_t>(i * c.k + l)] *
                right[static_cast<std::size_t>(j * c.k + l)]);
      }
      if (c.bias) {
        include(bias[static_cast<std::size_t>(j)]);
      }
      if (c.addend) {
        include(addend[static_cast<std::size_t>(i * c.n + j)]);
      }
      if (c.accumulate) {
        include(before[static_cast<std::size_t>(i * c.n + j)]);
      }
      expected.push_back(sum);
      magnitude.push_back(size);
    }
  }
  check_near(device_c.values(), expected, magnitude, float8_operations<D>(c.k), "float8_gemm");
}

template <device_policy D>
void check_float8(lab<D>& in) {
  auto const infinite = std::numeric_limits<float>::infinity();
  for (auto const& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                      {0, 5},
                                      {5, 0},
                                      {3, 7},
                                      {64, 64},
                                      {65, 130},
                                      {200, 48},
                                      {130, 1040}}) {
    for (float const odd : {0.0F, 3e38F, -1e-40F, infinite, std::nanf("")}) {
      check_quantize(in, rows, columns, odd);
    }
  }
  float8_case const cases[] = {{1, 1, 1, false, false, false},     {3, 5, 7, true, true, true},
                               {0, 4, 3, false, false, false},     {4, 0, 3, false, true, false},
                               {5, 3, 0, true, true, true},        {67, 144, 32, false, true, false},
                               {130, 64, 304, true, false, false}, {1, 272, 128, false, false, true},
                               {193, 16, 320, false, true, true},  {60, 80, 528, true, false, false},
                               {200, 300, 17, false, false, true}, {257, 128, 64, true, false, false},
                               {32, 48, 1040, false, true, false}, {32, 48, 1040, true, false, false}};
  for (auto const& c : cases) {
    check_float8_gemm<bfloat16>(in, c);
    check_float8_gemm<float>(in, c);
  }
}

}  // namespace superoffload::conformance
