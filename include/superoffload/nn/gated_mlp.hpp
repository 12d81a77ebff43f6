// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/core/gemm_format.hpp>
#include <superoffload/nn/float8_linear.hpp>
#include <superoffload/nn/linear.hpp>
#include <superoffload/nn/linear_terms.hpp>
#include <superoffload/nn/swiglu.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace superoffload::nn {

/// y = down(swiglu(gate_up(x))) [+ residual], `tile` rows at a time: what lies between x and y exists for one
/// tile only. The backward computes it again. Gates and Down are the functions of the two layers.
///
/// Each tile adds to the gradients of the weights. So that their sums are rounded once, the unit's gradient
/// should be wide (unit_layout::wide_gradient).
template <device_policy D, element T, class Gates, class Down>
struct tiled_mlp_function : linear_terms<D, T> {
  using linear_terms<D, T>::residual;
  using linear_terms<D, T>::y;

  linear gate_up;     ///< [2 intermediate, hidden]
  linear down;        ///< [hidden, intermediate]
  variable<D, T> x;   ///< [rows, hidden]
  std::int64_t tile;  ///< rows; the last tile may have fewer

  /// Makes y.
  void forward(tape<D, T>& t) {
    y = t.make(x.rows(), down.weight.rows);
    each_tile(t, [&](std::int64_t first, std::int64_t rows) {
      auto gates = gates_of(t, first, rows);
      gates.forward(t);
      auto added = residual;
      if (residual) {
        added = rows_of(t, *residual, first, rows);
      }
      Down last{{down.weight, down.bias, added}, swiglu(gates.y)};
      last.forward(t);
      t.copy(y.value() + first * y.columns(), last.y.value(), bytes_of(last.y));
    });
  }

  /// Gradients of x, the weights, the biases and the residual.
  void backward(tape<D, T>& t) {
    if (auto const to = t.gradient_of(x); !to.accumulate) {
      t.fill_zero(to.gradient, bytes_of(x));
    }
    each_tile(t, [&](std::int64_t first, std::int64_t rows) {
      auto gates = gates_of(t, first, rows);
      gates.forward(t);
      Down last{{down.weight, down.bias, {}}, swiglu(gates.y)};
      if constexpr (in_float8) {
        last.forward(t);  // finds the scales for its backward
      } else {
        last.y = t.make_at(nullptr, rows, y.columns());
      }
      last.y.adopt_gradient(y.gradient() + first * y.columns());
      last.backward(t);
      gates.backward(t);
    });
    this->backward_of_terms(t);
  }

  /// Of the two layers; swiglu reads gates and ups and writes its values.
  [[nodiscard]] autograd::work forward_work() const {
    auto all = gemms(gate_up.weight.count() + down.weight.count());
    all.bytes = 1.5 * static_cast<double>(x.rows()) * static_cast<double>(gate_up.weight.rows) * sizeof(T);
    return all;
  }
  /// The GEMMs of the forward that the backward runs again.
  [[nodiscard]] autograd::work again() const {
    return gemms(gate_up.weight.count() + (in_float8 ? down.weight.count() : 0));
  }

private:
  static constexpr bool in_float8 = requires(Down function) { function.largest; };

  /// Calls body(first row, rows); what it allocates is free afterwards.
  template <class Body>
  void each_tile(tape<D, T>& t, Body const& body) const {
    std::int64_t first = 0;
    do {  // once even without rows: gradients of weights are zero then, not absent
      auto const before = t.mark();
      body(first, std::min(tile, x.rows() - first));
      t.release(before);
      first += tile;
    } while (first < x.rows());
  }
  /// Rows of a variable, and of its gradient if there is one.
  static variable<D, T> rows_of(tape<D, T>& t, variable<D, T> const& all, std::int64_t first,
                                std::int64_t rows) {
    auto const part = t.make_at(all.value() + first * all.columns(), rows, all.columns());
    if (all.gradient() != nullptr) {
      part.adopt_gradient(all.gradient() + first * all.columns());
    }
    return part;
  }
  Gates gates_of(tape<D, T>& t, std::int64_t first, std::int64_t rows) const {
    return {{gate_up.weight, gate_up.bias, {}}, rows_of(t, x, first, rows)};
  }
  [[nodiscard]] autograd::work gemms(std::int64_t weights) const {
    auto const flops = 2.0 * static_cast<double>(x.rows()) * static_cast<double>(weights);
    return in_float8 ? autograd::work{.float8 = flops} : autograd::work{.flops = flops};
  }
  static std::size_t bytes_of(variable<D, T> const& v) {
    return static_cast<std::size_t>(v.count()) * sizeof(T);
  }
};

/// A gated MLP: down(silu(gate(x)) * up(x)).
struct gated_mlp {
  linear gate_up;              ///< [2 intermediate, hidden]: gates, then ups
  linear down;                 ///< [hidden, intermediate]
  std::int64_t tile_rows = 0;  ///< so many rows at a time; 0: all of them

  /// Calls f with every parameter.
  template <class F>
  void each_parameter(F&& f) {
    gate_up.each_parameter(f);
    down.each_parameter(f);
  }
  /// FLOPs of the forward of one row; a multiply-add counts as two.
  [[nodiscard]] double flops_per_row() const { return gate_up.flops_per_row() + down.flops_per_row(); }

  /// [rows, hidden] -> [rows, hidden].
  template <device_policy D, element T>
  variable<D, T> operator()(variable<D, T> x) const {
    return run<D, T>(x, {});
  }
  /// residual + (*this)(x).
  template <device_policy D, element T>
  variable<D, T> onto(variable<D, T> residual, variable<D, T> x) const {
    return run<D, T>(x, residual);
  }

private:
  template <device_policy D, element T>
  variable<D, T> run(variable<D, T> x, std::optional<variable<D, T>> residual) const {
    if (tile_rows > 0) {  // for few rows, too: what is recomputed does not depend on their number
      linear_terms<D, T> const terms{down.weight, {}, residual};
      bool const in_float8 = multiplies_in_float8<T>(down.gemms);
      if constexpr (std::is_same_v<T, bfloat16>) {
        if (in_float8) {
          return x.on().run(tiled_mlp_function<D, T, float8_linear_function<D, variable<D, T>>,
                                               float8_linear_function<D, swiglu_input<D, T>>>{
              terms, gate_up, down, x, tile_rows});
        }
      }
      return x.on().run(
          tiled_mlp_function<D, T, linear_function<D, T>, linear_function<D, T, swiglu_input<D, T>>>{
              terms, gate_up, down, x, tile_rows});
    }
    auto const gated = swiglu(gate_up(x));
    return residual ? down.onto(*residual, gated) : down(gated);
  }
};

}  // namespace superoffload::nn
