// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/head_norm.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/nn/attention.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/nn/rotary.hpp>

namespace superoffload::nn {

/// The tape's function behind nn::head_norm.
template <device_policy D, element T>
struct head_norm_function {
  variable<D, T> x;                ///< [rows, (heads + 2 kv_heads) * head_dim]; read by this function only
  parameter weight;                ///< of queries, then of keys
  double epsilon;                  ///< added to the mean square, under the root
  batch const* b;                  ///< for the positions; must outlive the backward
  wide<T> const* cosines;          ///< [table length, head_dim / 2]
  wide<T> const* sines;            ///< [table length, head_dim / 2]
  attention_heads heads;           ///< those of x's columns
  variable<D, T> y{};              ///< [rows, columns of x]
  wide<T>* inverse_rms = nullptr;  ///< [rows, heads + kv_heads], kept for the backward

  /// Makes y and inverse_rms.
  void forward(tape<D, T>& t) {
    y = t.make(x.rows(), x.columns());
    inverse_rms = t.template allocate<wide<T>>(x.rows() * shape().heads());
    t.launch(kernel::head_norm_forward<T>{shape(), x.value(), t.weights(weight), b->positions, cosines, sines,
                                          y.value(), inverse_rms, epsilon});
  }

  /// x's gradient overwrites y's. \throws error(internal) when another function has written it.
  void backward(tape<D, T>& t) {
    expect(x.gradient() == nullptr, exit_code::internal,
           "the queries and keys of a norm of heads have one use only");
    x.adopt_gradient(y.gradient());
    auto const blocks = kernel::rms_norm_blocks(x.rows());
    auto* const partial = weight.trainable ? t.template allocate<wide<T>>(blocks * weight.columns) : nullptr;
    t.launch(kernel::head_norm_backward<T>{shape(), x.value(), t.weights(weight), b->positions, cosines,
                                           sines, inverse_rms, x.gradient(), partial});
    if (!weight.trainable) {
      return;
    }
    t.with_gradient_type(weight, [&]<class G>(G) {
      auto const to = t.template gradient_of<G>(weight);
      t.launch(kernel::column_sum<wide<T>, G>{partial, to.gradient, blocks, weight.columns, to.accumulate});
    });
  }

private:
  [[nodiscard]] kernel::head_norm_shape shape() const {
    return {x.rows(), x.columns(), heads.heads, heads.kv_heads, heads.head_dim};
  }
};

/// RMSNorm of each query and key head, before rotation. weight [2 head_dim]: of queries, then of keys.
struct head_norm {
  parameter weight;  ///< [1, 2 head_dim]
  double epsilon;    ///< added to the mean square, under the root

  /// Calls f with every parameter.
  template <class F>
  void each_parameter(F&& f) {
    f(weight);
  }
  [[nodiscard]] static double flops_per_row() { return 0.0; }  ///< negligible beside GEMMs

  /// Normalises and rotates the queries and keys of qkv [rows, (heads + 2 kv_heads) * head_dim]; replaces
  /// nn::rotary. Batch and table must outlive the backward.
  template <device_policy D, element T>
  variable<D, T> turned(variable<D, T> qkv, batch const& b, rotary_table<D, wide<T>> const& table,
                        attention_heads h) const {
    return qkv.on().run(
        head_norm_function<D, T>{qkv, weight, epsilon, &b, table.cosines(), table.sines(), h});
  }
};

}  // namespace superoffload::nn
