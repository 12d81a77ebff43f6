// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/float8.hpp>
#include <superoffload/nn/linear_terms.hpp>

#include <cstdint>
#include <type_traits>

namespace superoffload::nn {

/// The linear layer with its three GEMMs in FP8: inputs, weights and gradients are rounded to float8,
/// each matrix with one scale from its own largest magnitude. Sums are float, and everything else is
/// bfloat16. A matrix that has a number that is not finite makes the results of its GEMMs NaN.
///
/// Rounded matrices exist only during their GEMMs: they are scratch. The forward keeps the two largest
/// magnitudes, so the backward rounds inputs and weights alike.
template <device_policy D, class Input>
struct float8_linear_function : linear_terms<D, bfloat16> {
  using T = bfloat16;
  using tape_type = tape<D, T>;
  using linear_terms<D, T>::weight;
  using linear_terms<D, T>::bias;
  using linear_terms<D, T>::residual;
  using linear_terms<D, T>::y;

  Input x;                           ///< [rows, in]
  std::uint32_t* largest = nullptr;  ///< patterns of the largest magnitudes of x and weight

  /// Makes y by one GEMM, which also adds bias and residual.
  void forward(tape_type& t) {
    y = t.make(x.rows(), weight.rows);
    largest = t.template allocate<std::uint32_t>(2);
    t.fill_zero(largest, 2 * sizeof(std::uint32_t));
    auto const before = t.mark();
    auto const* const values = values_of(t, x);
    t.launch(kernel::largest_magnitude{values, largest, x.count()});
    t.launch(kernel::largest_magnitude{t.weights(weight), largest + 1, weight.count()});
    auto const rows = rounded(t, values, largest, x.rows(), x.columns());
    auto const weights = rounded(t, t.weights(weight), largest + 1, weight.rows, weight.columns);
    t.launch(kernel::float8_gemm<T>{.a = rows.values,
                                    .b = weights.values,
                                    .a_inverse = rows.inverse,
                                    .b_inverse = weights.inverse,
                                    .c = y.value(),
                                    .m = x.rows(),
                                    .n = weight.rows,
                                    .k = weight.columns,
                                    .bias = bias ? t.weights(bias) : nullptr,
                                    .addend = residual ? residual->value() : nullptr});
    t.release(before);
  }

  /// Gradients of x, weight, bias and residual.
  void backward(tape_type& t) {
    typename tape_type::destination to{nullptr, false};
    if constexpr (is_variable) {
      to = t.gradient_of(x);
    }
    auto const before = t.mark();
    T const* values = nullptr;
    if constexpr (is_variable) {
      values = x.value();
    } else {
      to.gradient = t.template allocate<T>(x.count());
      values = to.gradient;
    }
    auto const stride = kernel::float8_stride(y.rows());
    auto* const of_y = t.template allocate<std::uint32_t>(1);
    t.fill_zero(of_y, sizeof(std::uint32_t));
    t.launch(kernel::largest_magnitude{y.gradient(), of_y, y.count()});
    auto const d_y =
        rounded(t, y.gradient(), of_y, y.rows(), y.columns(), true, weight.trainable ? stride : 0);
    gradient_of_x(t, d_y, to);
    if constexpr (!is_variable) {
      x.backward(to.gradient);
    }
    if (weight.trainable) {
      gradient_of_weight(t, d_y, values, stride);
    }
    t.release(before);
    this->backward_of_terms(t);
  }

  /// The bytes are those of rounding: a magnitude reads a matrix, and rounding reads it again and writes half
  /// of it. A backward rounds input and weight once, and the gradient of y for two GEMMs.
  [[nodiscard]] autograd::work forward_work() const {
    auto const elements = static_cast<double>(x.count() + weight.count());
    auto const of_input = is_variable ? 0.0 : 3.0 * static_cast<double>(x.count()) * sizeof(T);
    return {.bytes = of_input + 5.0 * elements,
            .float8 = 2.0 * static_cast<double>(x.rows()) * static_cast<double>(weight.count())};
  }

private:
  static constexpr bool is_variable = std::is_same_v<Input, variable<D, T>>;

  /// A matrix in 8 bits, in scratch memory.
  struct operand {
    float8* values;      ///< [rows, columns], or null
    float8* transposed;  ///< [columns, stride], or null
    float* inverse;
  };
  static operand rounded(tape_type& t, T const* from, std::uint32_t const* largest, std::int64_t rows,
                         std::int64_t columns, bool straight = true, std::int64_t stride = 0) {
    operand const made{straight ? t.template allocate<float8>(rows * columns) : nullptr,
                       stride > 0 ? t.template allocate<float8>(columns * stride) : nullptr,
                       t.template allocate<float>(1)};
    t.launch(kernel::quantize{.x = from,
                              .largest = largest,
                              .out = made.values,
                              .transposed = made.transposed,
                              .inverse = made.inverse,
                              .rows = rows,
                              .columns = columns,
                              .stride = stride});
    return made;
  }
  void gradient_of_x(tape_type& t, operand const& d_y, typename tape_type::destination to) {
    auto const before = t.mark();
    auto const weights =
        rounded(t, t.weights(weight), largest + 1, weight.rows, weight.columns, false, weight.rows);
    t.launch(kernel::float8_gemm<T>{.a = d_y.values,
                                    .b = weights.transposed,
                                    .a_inverse = d_y.inverse,
                                    .b_inverse = weights.inverse,
                                    .c = to.gradient,
                                    .m = x.rows(),
                                    .n = weight.columns,
                                    .k = weight.rows,
                                    .accumulate = to.accumulate});
    t.release(before);
  }
  void gradient_of_weight(tape_type& t, operand const& d_y, T const* values, std::int64_t stride) {
    auto const rows = rounded(t, values, largest, x.rows(), x.columns(), false, stride);
    t.with_gradient_type(weight, [&]<class G>(G) {
      auto const to = t.template gradient_of<G>(weight);
      t.launch(kernel::float8_gemm<G>{.a = d_y.transposed,
                                      .b = rows.transposed,
                                      .a_inverse = d_y.inverse,
                                      .b_inverse = rows.inverse,
                                      .c = to.gradient,
                                      .m = weight.rows,
                                      .n = weight.columns,
                                      .k = stride,
                                      .accumulate = to.accumulate});
    });
  }
};

}  // namespace superoffload::nn
