// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/offloaded_activations.hpp>
#include <superoffload/autograd/tape.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/zero/resident.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace superoffload::test {

/// Runs differentiable functions on the CPU, in double: units with random weights and a tape.
class graph {
public:
  using tape = autograd::tape<cpu::device, double>;
  using variable = autograd::variable<cpu::device, double>;

  explicit graph(std::vector<autograd::unit_layout> units, std::size_t bytes = std::size_t{1} << 24)
      : units_{std::move(units)},
        memory_{device, bytes},
        store{device, stream, units_, {}, nullptr, {nullptr, [](void*, int, zero::unit_gradient) {}}},
        offloaded{device, stream, bytes / 4},
        on{device,
           stream,
           {memory_.data(), memory_.bytes()},
           autograd::unit_access::to(store),
           static_cast<int>(units_.size()),
           &offloaded} {
    stream.synchronize();
    for (auto const& unit : units_) {
      for (auto const& tensor : unit.tensors()) {
        for (auto& value : weights(unit.id(), tensor)) { value = random(); }
      }
    }
  }

  double random() { return std::normal_distribution<double>{0.0, 0.5}(generator_); }
  std::vector<double> random(std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (auto& value : values) { value = random(); }
    return values;
  }

  [[nodiscard]] std::vector<autograd::unit_layout> const& units() const { return units_; }
  [[nodiscard]] std::span<double> weights(int unit, autograd::tensor_entry const& tensor) {
    return {store.weights(unit) + tensor.offset, static_cast<std::size_t>(tensor.count())};
  }
  [[nodiscard]] std::span<double const> gradient(int unit, autograd::tensor_entry const& tensor) {
    return {static_cast<double const*>(store.gradient(unit).data) + tensor.offset,
            static_cast<std::size_t>(tensor.count())};
  }

  /// An input of the tape with the given values.
  variable input(std::vector<double> const& values, std::int64_t columns) {
    auto const x = on.make(static_cast<std::int64_t>(values.size()) / columns, columns);
    stream.copy(x.value(), values.data(), values.size() * sizeof(double));
    stream.synchronize();
    return x;
  }

  cpu::device device{2};
  cpu::stream stream{device};

private:
  std::mt19937_64 generator_{20240229};
  std::vector<autograd::unit_layout> units_;
  buffer<cpu::device> memory_;

public:
  zero::resident_store<cpu::device, double> store;
  autograd::offloaded_activations<cpu::device> offloaded;
  tape on;
};

/// Compares every derivative of `value()` with respect to `variables` against `gradient` by central
/// differences.
template <class Value>
void check_derivatives(std::span<double> variables, std::span<double const> gradient, Value&& value,
                       double tolerance = 2e-7) {
  constexpr double h = 1e-5;
  REQUIRE(variables.size() == gradient.size());
  for (std::size_t i = 0; i < variables.size(); ++i) {
    double const kept = variables[i];
    variables[i] = kept + h;
    double const above = value();
    variables[i] = kept - h;
    double const below = value();
    variables[i] = kept;
    CHECK(gradient[i] == doctest::Approx((above - below) / (2.0 * h)).epsilon(tolerance).scale(1.0));
  }
}

/// Checks the gradients of y = body(x) with respect to x and to all parameters of unit 0. The loss is a
/// random linear functional of y. `columns`: of x.
template <class Body>
void check_function(graph& g, std::vector<double> x_values, std::int64_t columns, Body&& body) {
  std::vector<double> functional;
  auto const forward = [&](bool with_backward) {
    g.on.reset(with_backward);
    auto const x = g.input(x_values, columns);
    auto const y = g.on.scope({0}, autograd::pass::forward, [&] { return body(x); });
    g.stream.synchronize();
    if (functional.empty()) {
      functional = g.random(y.count());
    }
    return std::pair{x, y};
  };
  auto const value = [&] {
    auto const y = forward(false).second;
    double sum = 0.0;
    for (std::int64_t i = 0; i < y.count(); ++i) {
      sum += functional[static_cast<std::size_t>(i)] * y.value()[i];
    }
    return sum;
  };
  g.on.forget_gradients();
  auto const [x, y] = forward(true);
  y.adopt_gradient(g.on.allocate<double>(y.count()));
  g.stream.copy(y.gradient(), functional.data(), functional.size() * sizeof(double));
  g.on.backward();
  g.stream.synchronize();

  std::vector<double> const x_gradient{x.gradient(), x.gradient() + x.count()};
  std::vector<std::vector<double>> parameter_gradients;
  for (auto const& tensor : g.units()[0].tensors()) {
    auto const gradient = g.gradient(0, tensor);
    parameter_gradients.emplace_back(gradient.begin(), gradient.end());
  }
  check_derivatives(x_values, x_gradient, value);
  for (std::size_t i = 0; i < parameter_gradients.size(); ++i) {
    check_derivatives(g.weights(0, g.units()[0].tensors()[i]), parameter_gradients[i], value);
  }
}

}  // namespace superoffload::test
