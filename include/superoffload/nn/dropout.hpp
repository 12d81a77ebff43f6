// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/dropout.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/nn/batch.hpp>

#include <cstdint>

namespace superoffload::nn {

using autograd::tape;
using autograd::variable;

/// residual + dropout(x), in x's memory: this is the only function that reads x.
template <device_policy D, element T>
struct dropout_function {
  static constexpr bool in_place = true;  ///< the result shares x's memory
  variable<D, T> x,                       ///< [rows, columns], overwritten by y
      residual;                           ///< of the same shape
  kernel::dropout_mask mask;              ///< the same for forward and backward
  variable<D, T> y{};                     ///< [rows, columns], in x's memory

  /// Overwrites x with residual + x under the mask.
  void forward(tape<D, T>& t) {
    y = t.make_at(x.value(), x.rows(), x.columns());
    t.launch(kernel::dropout_add<T>{mask, x.value(), residual.value(), y.value(), y.count()});
  }

  /// x's gradient is y's under the mask; the residual's is y's, in the same memory where it is free.
  /// \throws error(internal) when another function has written x's gradient.
  void backward(tape<D, T>& t) {
    auto const to = t.gradient_of(x);
    expect(!to.accumulate, exit_code::internal, "what dropout leaves elements out of has one use only");
    t.launch(kernel::dropout_add<T>{mask, y.gradient(), nullptr, to.gradient, y.count()});
    if (residual.gradient() == nullptr) {
      residual.adopt_gradient(y.gradient());
    } else {
      t.launch(kernel::add<T>{residual.gradient(), y.gradient(), residual.gradient(), y.count()});
    }
  }
};

/// In training, where a backward follows, sets a share of the elements to zero and scales the others, so that
/// the mean is preserved (Srivastava et al., JMLR 15, 2014). The choice is a function of the batch's noise
/// and of `site`.
struct dropout {
  double rate = 0.0;       ///< probability to drop an element, in [0, 1); 0: none
  std::uint64_t site = 0;  ///< different for every dropout of a model

  /// The mask for this batch; empty when no backward follows.
  template <device_policy D, element T>
  [[nodiscard]] kernel::dropout_mask mask(tape<D, T> const& t, batch const& b) const {
    return t.recording() ? kernel::dropout_mask::with(rate, kernel::mixed(b.noise + kernel::mixed(site + 1)))
                         : kernel::dropout_mask{};
  }

  /// residual + dropout(layer(x)). A layer has an operator() and onto(), as linear has.
  template <device_policy D, element T, class Layer, class Input>
  variable<D, T> onto(variable<D, T> residual, Layer const& layer, Input x, batch const& b) const {
    auto const left_out = mask(x.on(), b);
    if (left_out.dropped == 0) {
      return layer.onto(residual, x);
    }
    return x.on().run(dropout_function<D, T>{layer(x), residual, left_out});
  }
};

}  // namespace superoffload::nn
