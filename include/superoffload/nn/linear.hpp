// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/gemm_format.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/nn/float8_linear.hpp>
#include <superoffload/nn/linear_terms.hpp>

#include <optional>
#include <type_traits>

namespace superoffload::nn {

/// y = x W^T [+ b] [+ residual]: x [rows, in], W [out, in], y [rows, out]. x is a variable, or an input that
/// exists only during the GEMM, such as swiglu_input: its forward(out) writes it, and its backward(out) takes
/// its gradient from `out` and writes its values there.
template <device_policy D, element T, class Input = variable<D, T>>
struct linear_function : linear_terms<D, T> {
  using linear_terms<D, T>::weight;
  using linear_terms<D, T>::bias;
  using linear_terms<D, T>::residual;
  using linear_terms<D, T>::y;

  Input x;  ///< [rows, in]

  /// Makes y by one GEMM, which also adds bias and residual.
  void forward(tape<D, T>& t) {
    y = t.make(x.rows(), weight.rows);
    auto const before = t.mark();
    gemm(t, values_of(t, x));
    t.release(before);
  }

  /// Gradients of x, weight, bias and residual; the residual's takes y's memory where it is free.
  void backward(tape<D, T>& t) {
    if constexpr (is_variable) {
      gemm_of_gradient(t, t.gradient_of(x));
      weight_gradient(t, x.value());
    } else {
      auto const before = t.mark();
      auto* const values = t.template allocate<T>(x.count());
      gemm_of_gradient(t, {values, false});
      x.backward(values);
      weight_gradient(t, values);
      t.release(before);
    }
    this->backward_of_terms(t);
  }

  /// Bytes only where the input is computed for the GEMM.
  [[nodiscard]] autograd::work forward_work() const {
    return {.flops = 2.0 * static_cast<double>(x.rows()) * static_cast<double>(weight.count()),
            .bytes = is_variable ? 0.0 : 3.0 * static_cast<double>(x.count()) * sizeof(T)};
  }

private:
  static constexpr bool is_variable = std::is_same_v<Input, variable<D, T>>;

  void gemm(tape<D, T>& t, T const* values) {
    t.launch(kernel::gemm<T>{.a = values,
                             .b = t.weights(weight),
                             .c = y.value(),
                             .m = x.rows(),
                             .n = weight.rows,
                             .k = weight.columns,
                             .transpose_b = true,
                             .bias = bias ? t.weights(bias) : nullptr,
                             .addend = residual ? residual->value() : nullptr});
  }
  void gemm_of_gradient(tape<D, T>& t, typename tape<D, T>::destination to) {
    t.launch(kernel::gemm<T>{.a = y.gradient(),
                             .b = t.weights(weight),
                             .c = to.gradient,
                             .m = x.rows(),
                             .n = weight.columns,
                             .k = weight.rows,
                             .accumulate = to.accumulate});
  }
  void weight_gradient(tape<D, T>& t, T const* values) {
    if (!weight.trainable) {
      return;
    }
    t.with_gradient_type(weight, [&]<class G>(G) {
      auto const to = t.template gradient_of<G>(weight);
      t.launch(kernel::gemm<T, G>{.a = y.gradient(),
                                  .b = values,
                                  .c = to.gradient,
                                  .m = weight.rows,
                                  .n = weight.columns,
                                  .k = x.rows(),
                                  .transpose_a = true,
                                  .accumulate = to.accumulate});
    });
  }
};

/// Are GEMMs of this format in FP8? \throws error(internal) if elements of type T have none
template <element T>
bool multiplies_in_float8(gemm_format gemms) {
  bool const in_float8 = gemms == gemm_format::float8;
  expect(!in_float8 || std::is_same_v<T, bfloat16>, exit_code::internal,
         "FP8 GEMMs are for models in bfloat16, but this one is in ", name_of(dtype_of<T>));
  return in_float8;
}

/// A dense layer without activation. weight [out, in] as PyTorch stores it; bias [out] or none.
struct linear {
  parameter weight;                          ///< [out, in]
  parameter bias{};                          ///< [1, out], or unit -1: none
  gemm_format gemms = gemm_format::element;  ///< of the forward and the backward

  /// Calls f with every parameter; a missing bias has the unit -1.
  template <class F>
  void each_parameter(F&& f) {
    f(weight);
    f(bias);
  }
  /// FLOPs of the forward of one row; a multiply-add counts as two.
  [[nodiscard]] double flops_per_row() const { return 2.0 * static_cast<double>(weight.count()); }

  /// [rows, in] -> [rows, out] of a variable, or of an input that exists only during the GEMM.
  template <device_policy D, element T, template <device_policy, element> class Input>
  variable<D, T> operator()(Input<D, T> x) const {
    return run<D, T>(x, {});
  }

  /// residual + (*this)(x) in one GEMM.
  template <device_policy D, element T, template <device_policy, element> class Input>
  variable<D, T> onto(variable<D, T> residual, Input<D, T> x) const {
    return run<D, T>(x, residual);
  }

private:
  template <device_policy D, element T, class Input>
  variable<D, T> run(Input x, std::optional<variable<D, T>> residual) const {
    linear_terms<D, T> const terms{weight, bias, residual};
    bool const in_float8 = multiplies_in_float8<T>(gemms);
    if constexpr (std::is_same_v<T, bfloat16>) {
      if (in_float8) {
        return x.on().run(float8_linear_function<D, Input>{terms, x});
      }
    }
    return x.on().run(linear_function<D, T, Input>{terms, x});
  }
};

}  // namespace superoffload::nn
