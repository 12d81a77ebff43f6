// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/elementwise.hpp>

namespace superoffload::nn {

/// The tape's function behind `a + b`; both have one shape.
template <device_policy D, element T>
struct add_function {
  autograd::variable<D, T> a,    ///< [rows, columns]
      b;                         ///< of the same shape; may be a
  autograd::variable<D, T> y{};  ///< a new matrix

  /// Makes y.
  void forward(autograd::tape<D, T>& t) {
    y = t.make(a.rows(), a.columns());
    t.launch(kernel::add<T>{a.value(), b.value(), y.value(), y.count()});
  }

  /// Adds y's gradient to those of a and b.
  void backward(autograd::tape<D, T>& t) {
    for (auto const operand : {a, b}) {
      auto const to = t.gradient_of(operand);
      t.launch(kernel::convert<T, T>{y.gradient(), to.gradient, y.count(), to.accumulate});
    }
  }
};

}  // namespace superoffload::nn

namespace superoffload::autograd {

/// The sum of two matrices of one shape. If one of them is the result of a linear layer, nn::linear::onto
/// needs one pass less.
template <device_policy D, element T>
variable<D, T> operator+(variable<D, T> a, variable<D, T> b) {
  return a.on().run(nn::add_function<D, T>{a, b});
}

}  // namespace superoffload::autograd
