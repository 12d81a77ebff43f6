// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/kernel/rms_norm.hpp>

namespace superoffload::nn {

using autograd::parameter;
using autograd::tape;
using autograd::variable;

/// The tape's function behind nn::rms_norm.
template <device_policy D, element T>
struct rms_norm_function {
  variable<D, T> x;                ///< [rows, columns]
  parameter weight;                ///< [1, columns]
  double epsilon;                  ///< added to the mean square, under the root
  variable<D, T> y{};              ///< [rows, columns]
  wide<T>* inverse_rms = nullptr;  ///< [rows], kept for the backward

  /// Makes y and inverse_rms.
  void forward(tape<D, T>& t) {
    y = t.make(x.rows(), x.columns());
    inverse_rms = t.template allocate<wide<T>>(x.rows());
    t.launch(kernel::rms_norm_forward<T>{x.value(), t.weights(weight), y.value(), inverse_rms, x.rows(),
                                         x.columns(), epsilon});
  }

  /// x's gradient overwrites y's, or is added to what other functions have written.
  void backward(tape<D, T>& t) {
    bool const accumulate = x.gradient() != nullptr;
    if (!accumulate) {
      x.adopt_gradient(y.gradient());
    }  // in place: this is the last read of y's gradient
    auto const blocks = kernel::rms_norm_blocks(x.rows());
    auto* const partial = weight.trainable ? t.template allocate<wide<T>>(blocks * x.columns()) : nullptr;
    t.launch(kernel::rms_norm_backward<T>{y.gradient(), x.value(), t.weights(weight), inverse_rms,
                                          x.gradient(), partial, x.rows(), x.columns(), accumulate});
    if (!weight.trainable) {
      return;
    }
    t.with_gradient_type(weight, [&]<class G>(G) {
      auto const to = t.template gradient_of<G>(weight);
      t.launch(kernel::column_sum<wide<T>, G>{partial, to.gradient, blocks, x.columns(), to.accumulate});
    });
  }
};

/// x / sqrt(mean(x^2) + epsilon) * weight, row by row.
struct rms_norm {
  parameter weight;  ///< [1, columns]
  double epsilon;    ///< added to the mean square, under the root

  /// Calls f with every parameter.
  template <class F>
  void each_parameter(F&& f) {
    f(weight);
  }
  [[nodiscard]] static double flops_per_row() { return 0.0; }  ///< negligible beside GEMMs

  /// [rows, columns] -> [rows, columns].
  template <device_policy D, element T>
  variable<D, T> operator()(variable<D, T> x) const {
    return x.on().run(rms_norm_function<D, T>{x, weight, epsilon});
  }
};

}  // namespace superoffload::nn
