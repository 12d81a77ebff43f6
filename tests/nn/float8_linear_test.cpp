// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/autograd/tape.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/float8.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/kernel/swiglu.hpp>
#include <superoffload/nn/linear.hpp>
#include <superoffload/nn/swiglu.hpp>
#include <superoffload/zero/resident.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using namespace superoffload;
using matrix = std::vector<double>;

/// Rounded to float8 with the scale of the largest magnitude, as the layer rounds its operands.
matrix rounded(matrix const& x) {
  std::uint32_t largest = 0;
  for (double const value : x) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(static_cast<float>(std::abs(value))));
  }
  auto const scale = float8_scale::of(largest);
  matrix values;
  for (double const value : x) {
    values.push_back(double{float8{static_cast<float>(value) * scale.factor}} * double{scale.inverse});
  }
  return values;
}

/// op(a) op(b): [m, n]; `a` is [m, k], or [k, m] if it is transposed, and `b` alike.
matrix product(matrix const& a, bool transpose_a, matrix const& b, bool transpose_b, std::int64_t m,
               std::int64_t n, std::int64_t k) {
  matrix c;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a[static_cast<std::size_t>(transpose_a ? l * m + i : i * k + l)] *
               b[static_cast<std::size_t>(transpose_b ? j * k + l : l * n + j)];
      }
      c.push_back(sum);
    }
  }
  return c;
}

/// Equal but for the rounding to bfloat16, and for sums in float.
void check_near(bfloat16 const* values, matrix const& expected) {
  double largest = 0;
  for (double const value : expected) { largest = std::max(largest, std::abs(value)); }
  int wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double const allowed = 0x1p-8 * std::abs(expected[i]) + 1e-5 * largest;
    wrong += std::abs(double{values[i]} - expected[i]) <= allowed ? 0 : 1;
  }
  CHECK(wrong == 0);
}

/// A tape in bfloat16 on the CPU with one unit of random weights.
struct bench {
  explicit bench(autograd::unit_layout unit)
      : units{{std::move(unit)}},
        store{device, stream, units, {}, nullptr, {nullptr, [](void*, int, zero::unit_gradient) {}}},
        on{device, stream, {memory.data(), memory.bytes()}, autograd::unit_access::to(store), 1} {
    for (std::int64_t i = 0; i < units[0].elements(); ++i) { store.weights(0)[i] = random(); }
  }
  bfloat16 random() { return bfloat16{std::normal_distribution<float>{0.0F, 0.5F}(generator)}; }
  autograd::variable<cpu::device, bfloat16> input(std::int64_t rows, std::int64_t columns) {
    auto const x = on.make(rows, columns);
    for (std::int64_t i = 0; i < x.count(); ++i) { x.value()[i] = random(); }
    return x;
  }
  /// Runs layer(x...), gives y a random gradient, and runs the backward.
  template <class Body>
  auto run(Body const& body) {
    auto const y = on.scope({0}, autograd::pass::forward, body);
    stream.synchronize();  // its scratch memory is free then
    y.adopt_gradient(on.allocate<bfloat16>(y.count()));
    for (std::int64_t i = 0; i < y.count(); ++i) { y.gradient()[i] = random(); }
    gradient_of_y.assign(y.gradient(), y.gradient() + y.count());
    on.backward();
    stream.synchronize();
    return y;
  }
  [[nodiscard]] matrix weights(autograd::parameter const& p) const {
    auto const* const first = store.weights(0) + p.offset;
    return {first, first + p.count()};
  }
  [[nodiscard]] bfloat16 const* gradient(autograd::parameter const& p) const {
    return static_cast<bfloat16 const*>(store.gradient(0).data) + p.offset;
  }
  static matrix values(autograd::variable<cpu::device, bfloat16> x) {
    return {x.value(), x.value() + x.count()};
  }

  cpu::device device{2};
  cpu::stream stream{device};
  std::mt19937 generator{7};
  std::vector<autograd::unit_layout> units;
  buffer<cpu::device> memory{device, std::size_t{1} << 22};
  zero::resident_store<cpu::device, bfloat16> store;
  autograd::tape<cpu::device, bfloat16> on;
  matrix gradient_of_y;
};

constexpr std::int64_t rows = 21, in = 48, out = 40;

nn::linear float8_layer(autograd::unit_layout& unit, bool bias) {
  nn::linear layer{.weight = unit.add_matrix({{"w", out}}, in), .gemms = gemm_format::float8};
  if (bias) {
    layer.bias = unit.add_vector("b", out);
  }
  return layer;
}

TEST_CASE("a linear layer in 8 bits multiplies rounded operands, forward and backward") {
  autograd::unit_layout unit{0, "unit"};
  auto const layer = float8_layer(unit, true);
  bench b{unit};
  auto const x = b.input(rows, in);
  auto const x_values = bench::values(x);
  auto const y = b.run([&] { return layer(x); });

  auto const x_rounded = rounded(x_values), w_rounded = rounded(b.weights(layer.weight));
  auto const d_y = rounded(b.gradient_of_y);
  auto expected = product(x_rounded, false, w_rounded, true, rows, out, in);
  auto const bias = b.weights(layer.bias);
  for (std::size_t i = 0; i < expected.size(); ++i) { expected[i] += bias[i % out]; }
  check_near(y.value(), expected);
  check_near(x.gradient(), product(d_y, false, w_rounded, false, rows, in, out));
  check_near(b.gradient(layer.weight), product(d_y, true, x_rounded, false, out, in, rows));
  matrix sums(out);
  for (std::size_t i = 0; i < b.gradient_of_y.size(); ++i) { sums[i % out] += b.gradient_of_y[i]; }
  check_near(b.gradient(layer.bias), sums);
  // The layer in bfloat16 differs by more than that.
  auto exact = product(x_values, false, b.weights(layer.weight), true, rows, out, in);
  double difference = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference = std::max(difference, std::abs(exact[i] + bias[i % out] - double{y.value()[i]}));
  }
  CHECK(difference > 0.02);
}

TEST_CASE("an input that exists only during the products, and a residual, in 8 bits") {
  autograd::unit_layout unit{0, "unit"};
  auto const layer = float8_layer(unit, false);
  bench b{unit};
  auto const gate_up = b.input(rows, 2 * in), residual = b.input(rows, out);
  std::vector<bfloat16> of_gates(rows * in);
  cpu::run(kernel::swiglu_forward<bfloat16>{gate_up.value(), of_gates.data(), rows, in});
  matrix const silu{of_gates.begin(), of_gates.end()};
  auto const y = b.run([&] { return layer.onto(residual, nn::swiglu(gate_up)); });
  auto const rounded_input = rounded(silu);
  auto expected = product(rounded_input, false, rounded(b.weights(layer.weight)), true, rows, out, in);
  for (std::size_t i = 0; i < expected.size(); ++i) { expected[i] += double{residual.value()[i]}; }
  check_near(y.value(), expected);
  check_near(b.gradient(layer.weight),
             product(rounded(b.gradient_of_y), true, rounded_input, false, out, in, rows));
  CHECK(residual.gradient() == y.gradient());
}

TEST_CASE("a gradient that is not finite makes the gradients of the layer NaN") {
  autograd::unit_layout unit{0, "unit"};
  auto const layer = float8_layer(unit, false);
  bench b{unit};
  auto const x = b.input(rows, in);
  auto const y = b.on.scope({0}, autograd::pass::forward, [&] { return layer(x); });
  b.stream.synchronize();
  y.adopt_gradient(b.on.allocate<bfloat16>(y.count()));
  for (std::int64_t i = 0; i < y.count(); ++i) { y.gradient()[i] = b.random(); }
  y.gradient()[17] = bfloat16{INFINITY};
  b.on.backward();
  b.stream.synchronize();
  for (std::int64_t i = 0; i < layer.weight.count(); ++i) {
    CHECK(std::isnan(float{b.gradient(layer.weight)[i]}));
  }
  CHECK(std::isnan(float{x.gradient()[0]}));
}

TEST_CASE("FP8 GEMMs are refused for a model in float32") {
  autograd::unit_layout unit{0, "unit"};
  auto const layer = float8_layer(unit, false);
  cpu::device device{1};
  autograd::tape<cpu::device, float> dry{device, 1};
  dry.reset();
  CHECK_THROWS_WITH_AS(dry.scope({0}, autograd::pass::forward, [&] { return layer(dry.make(rows, in)); }),
                       "FP8 GEMMs are for models in bfloat16, but this one is in F32", error);
}

}  // namespace
