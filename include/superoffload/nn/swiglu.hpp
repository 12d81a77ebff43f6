// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/swiglu.hpp>

namespace superoffload::nn {

template <device_policy D, element T>
struct swiglu_function {
  autograd::variable<D, T> gate_up;
  autograd::variable<D, T> y{};

  void forward(autograd::tape<D, T>& t) {
    y = t.make(gate_up.rows(), gate_up.columns() / 2);
    t.launch(kernel::swiglu_forward<T>{gate_up.value(), y.value(), y.rows(), y.columns()});
  }

  [[nodiscard]] autograd::work forward_work() const {
    return {.bytes = 3.0 * static_cast<double>(y.count()) * sizeof(T)};
  }

  void backward(autograd::tape<D, T>& t) {
    // In place: nothing but this function reads gate and up.
    t.launch(
        kernel::swiglu_backward<T>{y.gradient(), gate_up.value(), gate_up.value(), y.rows(), y.columns()});
    gate_up.adopt_gradient(gate_up.value());
  }
};

/// silu(gate) * up: [rows, 2 * columns] -> [rows, columns]. Takes its input over: nothing else may read it
/// afterwards.
template <device_policy D, element T>
autograd::variable<D, T> swiglu(autograd::variable<D, T> gate_up) {
  return gate_up.on().run(swiglu_function<D, T>{gate_up});
}

}  // namespace superoffload::nn
