// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/kernel/reduction.hpp>

#include <optional>
#include <type_traits>

namespace superoffload::nn {

using autograd::parameter;
using autograd::tape;
using autograd::variable;

/// y = x W^T [+ b] [+ residual]: what it is beside its product.
template <device_policy D, element T>
struct linear_terms {
  parameter weight;                        ///< [out, in]
  parameter bias;                          ///< none when its unit is negative
  std::optional<variable<D, T>> residual;  ///< [rows, out]
  variable<D, T> y{};                      ///< [rows, out]

  /// The gradients of bias and residual; the residual's takes y's memory where it is free.
  void backward_of_terms(tape<D, T>& t) {
    if (bias && bias.trainable) {
      t.with_gradient_type(bias, [&]<class G>(G) {
        auto const to_b = t.template gradient_of<G>(bias);
        t.launch(
            kernel::column_sum<T, G>{y.gradient(), to_b.gradient, y.rows(), y.columns(), to_b.accumulate});
      });
    }
    if (!residual) {
      return;
    }
    if (residual->gradient() == nullptr) {
      residual->adopt_gradient(y.gradient());
    } else {
      t.launch(kernel::add<T>{residual->gradient(), y.gradient(), residual->gradient(), y.count()});
    }
  }
};

/// The values of a layer's input [rows, in]: a variable's, or those of an input that exists only during the
/// GEMM, computed into memory of the tape.
template <device_policy D, element T, class Input>
T const* values_of(tape<D, T>& t, Input const& x) {
  if constexpr (std::is_same_v<Input, variable<D, T>>) {
    return x.value();
  } else {
    auto* const values = t.template allocate<T>(x.count());
    x.forward(values);
    return values;
  }
}

}  // namespace superoffload::nn
