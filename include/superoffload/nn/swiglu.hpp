// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/swiglu.hpp>

#include <cstdint>

namespace superoffload::nn {

/// silu(gate) * up, the input of one linear layer: in memory only while that layer's GEMMs read it. Its
/// backward recomputes it, bit for bit, along with the gradients of gate and up: that costs less than keeping
/// it.
template <device_policy D, element T>
struct swiglu_input {
  autograd::variable<D, T> gate_up;  ///< [rows, 2 * columns]

  [[nodiscard]] autograd::tape<D, T>& on() const noexcept { return gate_up.on(); }  ///< gate_up's tape
  [[nodiscard]] std::int64_t rows() const noexcept { return gate_up.rows(); }       ///< those of gate_up
  /// Half of gate_up's columns.
  [[nodiscard]] std::int64_t columns() const noexcept { return gate_up.columns() / 2; }
  /// Elements of the values.
  [[nodiscard]] std::int64_t count() const noexcept { return rows() * columns(); }

  /// Writes the values to `out` [rows, columns].
  void forward(T* out) const {
    on().launch(kernel::swiglu_forward<T>{gate_up.value(), out, rows(), columns()});
  }
  /// `out` [rows, columns] holds the gradient of the values, and then the values again. The gradients of gate
  /// and up overwrite gate and up: only this function reads them.
  void backward(T* out) const {
    on().launch(kernel::swiglu_backward<T>{out, gate_up.value(), gate_up.value(), out, rows(), columns()});
    gate_up.adopt_gradient(gate_up.value());
  }
};

/// silu(gate) * up for the linear layer that it is passed to. Takes over gate_up: no other function may read
/// it afterwards.
template <device_policy D, element T>
swiglu_input<D, T> swiglu(autograd::variable<D, T> gate_up) {
  return {gate_up};
}

}  // namespace superoffload::nn
