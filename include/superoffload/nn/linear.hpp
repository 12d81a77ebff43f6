// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/kernel/reduction.hpp>

#include <optional>

namespace superoffload::nn {

using autograd::parameter;
using autograd::tape;
using autograd::variable;

/// y = x W^T [+ b] [+ residual]: x [rows, in], W [out, in], y [rows, out].
template <device_policy D, element T>
struct linear_function {
  variable<D, T> x;
  parameter weight;
  parameter bias;                          // none when its unit is negative
  std::optional<variable<D, T>> residual;  // [rows, out]
  variable<D, T> y{};

  void forward(tape<D, T>& t) {
    y = t.make(x.rows(), weight.rows);
    t.launch(kernel::gemm<T>{.a = x.value(),
                             .b = t.weights(weight),
                             .c = y.value(),
                             .m = x.rows(),
                             .n = weight.rows,
                             .k = weight.columns,
                             .transpose_b = true,
                             .bias = bias ? t.weights(bias) : nullptr,
                             .addend = residual ? residual->value() : nullptr});
  }

  void backward(tape<D, T>& t) {
    auto const to_x = t.gradient_of(x);
    t.launch(kernel::gemm<T>{.a = y.gradient(),
                             .b = t.weights(weight),
                             .c = to_x.gradient,
                             .m = x.rows(),
                             .n = weight.columns,
                             .k = weight.rows,
                             .accumulate = to_x.accumulate});
    if (weight.trainable) {
      t.with_gradient_type(weight, [&]<class G>(G) {
        auto const to_w = t.template gradient_of<G>(weight);
        t.launch(kernel::gemm<T, G>{.a = y.gradient(),
                                    .b = x.value(),
                                    .c = to_w.gradient,
                                    .m = weight.rows,
                                    .n = weight.columns,
                                    .k = x.rows(),
                                    .transpose_a = true,
                                    .accumulate = to_w.accumulate});
      });
    }
    if (bias && bias.trainable) {
      t.with_gradient_type(bias, [&]<class G>(G) {
        auto const to_b = t.template gradient_of<G>(bias);
        t.launch(
            kernel::column_sum<T, G>{y.gradient(), to_b.gradient, y.rows(), y.columns(), to_b.accumulate});
      });
    }
    if (residual) {
      pass_on(t);
    }
  }

  [[nodiscard]] autograd::work forward_work() const {
    return {.flops = 2.0 * static_cast<double>(x.rows()) * static_cast<double>(weight.count())};
  }

private:
  /// The residual's gradient is y's, whose memory nobody needs any more.
  void pass_on(tape<D, T>& t) {
    if (residual->gradient() == nullptr) {
      residual->adopt_gradient(y.gradient());
    } else {
      t.launch(kernel::add<T>{residual->gradient(), y.gradient(), residual->gradient(), y.count()});
    }
  }
};

/// A dense layer without activation. weight [out, in] as PyTorch stores it; bias [out] or none.
struct linear {
  parameter weight;
  parameter bias{};

  template <class F>
  void each_parameter(F&& f) {
    f(weight);
    f(bias);
  }
  /// Of the forward of one row, a multiply-add counted as two.
  [[nodiscard]] double flops_per_row() const { return 2.0 * static_cast<double>(weight.count()); }

  /// [rows, in] -> [rows, out].
  template <device_policy D, element T>
  variable<D, T> operator()(variable<D, T> x) const {
    return x.on().run(linear_function<D, T>{x, weight, bias, {}});
  }

  /// residual + (*this)(x) in one product.
  template <device_policy D, element T>
  variable<D, T> onto(variable<D, T> residual, variable<D, T> x) const {
    return x.on().run(linear_function<D, T>{x, weight, bias, residual});
  }
};

}  // namespace superoffload::nn
