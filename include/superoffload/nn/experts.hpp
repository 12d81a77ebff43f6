// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/kernel/expert_swiglu.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/kernel/grouped_gemm.hpp>
#include <superoffload/kernel/load_balancing.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/kernel/routing.hpp>
#include <superoffload/nn/linear.hpp>
#include <superoffload/nn/load_balancing.hpp>

#include <cstdint>

namespace superoffload::nn {

using autograd::parameter;
using autograd::tape;
using autograd::variable;

/// The layout of expert matrices in their parameter, one expert after the other: [out, in] like dense layers,
/// or [in, out].
enum class expert_layout : std::uint8_t { out_in, in_out };

/// A mixture of experts without its norm: a router, and gated MLPs of which each token uses a few.
struct experts {
  linear router;                  ///< [count, hidden]
  parameter gate_up,              ///< per expert [2 intermediate, hidden], or transposed (expert_layout)
      down;                       ///< per expert [hidden, intermediate], or transposed
  parameter gate_up_bias{};       ///< [count, 2 intermediate] or none
  parameter down_bias{};          ///< [count, hidden] or none
  std::int64_t count = 0;         ///< experts of the layer
  std::int64_t intermediate = 0;  ///< columns between the two GEMMs of an expert
  std::int32_t each = 0;          ///< experts per token
  bool normalised = true;         ///< the weights of a token add up to 1; see kernel::routing_shape
  kernel::expert_gate gate = kernel::expert_gate::silu;  ///< the activation between the two GEMMs
  double gate_limit = 0;                                 ///< of the clamped gate
  expert_layout layout = expert_layout::out_in;          ///< of gate_up and of down

  /// Calls f with every parameter; one that the layer lacks has the unit -1.
  template <class F>
  void each_parameter(F&& f) {
    router.each_parameter(f);
    for (auto* p : {&gate_up, &gate_up_bias, &down, &down_bias}) { f(*p); }
  }
  /// FLOPs of the forward of one row, in the router and the experts that it uses.
  [[nodiscard]] double flops_per_row() const {
    return router.flops_per_row() +
           6.0 * static_cast<double>(each * intermediate) * static_cast<double>(router.weight.columns);
  }

  /// residual + the weighted sum of the chosen experts' results for x; both [rows, hidden]. No token is
  /// dropped. The experts must outlive the backward. With `load` they take part in the load-balancing loss.
  template <device_policy D, element T>
  variable<D, T> onto(variable<D, T> residual, variable<D, T> x, layer_load load = {}) const;
};

/// From forward to backward it keeps the routing and the results of the experts' first GEMMs. The rows in
/// expert order and the inputs of the second GEMMs are recomputed.
template <device_policy D, element T>
struct experts_function {
  variable<D, T> x,            ///< [rows, hidden], already normed
      residual;                ///< [rows, hidden]
  experts const* e;            ///< must outlive the backward
  layer_load load{};           ///< for the load-balancing loss
  variable<D, T> y{};          ///< [rows, hidden]
  T* logits = nullptr;         ///< [rows, count], of the router
  T* dense = nullptr;          ///< [rows, count]: the weights of the chosen and zeros; null without down_bias
  T* gate_up = nullptr;        ///< [choices, 2 intermediate]; the backward overwrites it with its gradient
  wide<T>* weights = nullptr;  ///< [choices]
  ///@{
  /// As in kernel::group_choices, kept for the backward.
  std::int32_t *chosen = nullptr, *starts = nullptr, *order = nullptr, *places = nullptr;
  ///@}

  /// Routes, and runs the experts' GEMMs on rows sorted by expert. The sizes of the groups stay on the
  /// device.
  void forward(tape<D, T>& t) {
    auto const s = shape();
    auto const choices = s.choices();
    y = t.make(x.rows(), x.columns());
    logits = t.template allocate<T>(s.rows * s.experts);
    dense = e->down_bias ? t.template allocate<T>(s.rows * s.experts) : nullptr;
    gate_up = t.template allocate<T>(choices * 2 * e->intermediate);
    weights = t.template allocate<wide<T>>(choices);
    chosen = t.template allocate<std::int32_t>(choices);
    starts = t.template allocate<std::int32_t>(s.experts + 1);
    order = t.template allocate<std::int32_t>(choices);
    places = t.template allocate<std::int32_t>(choices);

    t.launch(kernel::gemm<T>{.a = x.value(),
                             .b = t.weights(e->router.weight),
                             .c = logits,
                             .m = x.rows(),
                             .n = s.experts,
                             .k = x.columns(),
                             .transpose_b = true,
                             .bias = e->router.bias ? t.weights(e->router.bias) : nullptr});
    t.launch(kernel::route_forward<T>{s, logits, chosen, weights, dense});
    if (load.wanted) {
      t.launch(kernel::expert_load<T>{s, logits, chosen, load.padding, load.load});
    }
    t.launch(kernel::group_choices{chosen, starts, order, places, choices, s.experts});

    auto const before = t.mark();
    auto* const sorted = t.template allocate<T>(choices * x.columns());
    t.launch(kernel::gather_rows<T>{x.value(), order, sorted, choices, x.columns(), s.each});
    t.launch(gemm(t, e->gate_up, sorted, gate_up, x.columns(), 2 * e->intermediate, forward_pass,
                  e->gate_up_bias));
    auto* const hidden = t.template allocate<T>(choices * e->intermediate);
    t.launch(kernel::expert_swiglu_forward<T>{e->gate, gate_up, weights, order, hidden, choices,
                                              e->intermediate, e->gate_limit});
    t.launch(gemm(t, e->down, hidden, sorted, e->intermediate, x.columns(), forward_pass, {}));
    if (e->down_bias) {  // those of the chosen experts, weighted
      t.launch(kernel::gemm<T>{.a = dense,
                               .b = t.weights(e->down_bias),
                               .c = y.value(),
                               .m = x.rows(),
                               .n = x.columns(),
                               .k = s.experts,
                               .addend = residual.value()});
    }
    t.launch(kernel::combine_rows<T>{sorted, places, e->down_bias ? y.value() : residual.value(), y.value(),
                                     x.rows(), x.columns(), s.each});
    t.release(before);
  }

  /// Gradients of x, residual and every trainable parameter; sorted rows and `hidden` are computed again.
  void backward(tape<D, T>& t) {
    auto const s = shape();
    auto const choices = s.choices();
    auto const to_x = t.gradient_of(x);
    auto const before = t.mark();
    auto* const sorted = t.template allocate<T>(choices * x.columns());
    auto* const hidden = t.template allocate<T>(choices * e->intermediate);
    auto* const d_weights = t.template allocate<wide<T>>(choices);
    auto* const d_logits = t.template allocate<T>(s.rows * s.experts);
    T* d_dense = nullptr;

    t.launch(kernel::gather_rows<T>{y.gradient(), order, sorted, choices, x.columns(), s.each});
    t.launch(gemm(t, e->down, sorted, hidden, x.columns(), e->intermediate, backward_pass, {}));
    auto* const d_gate_up = gate_up;  // in place: only this function reads it
    t.launch(kernel::expert_swiglu_backward<T>{e->gate, hidden, gate_up, weights, order, d_gate_up, hidden,
                                               d_weights, choices, e->intermediate, e->gate_limit});
    outer(t, e->down, hidden, e->intermediate, sorted, x.columns());
    if (e->down_bias) {
      d_dense = t.template allocate<T>(s.rows * s.experts);
      down_bias_backward(t, d_dense);
    }

    t.launch(kernel::gather_rows<T>{x.value(), order, sorted, choices, x.columns(), s.each});
    outer(t, e->gate_up, sorted, x.columns(), d_gate_up, 2 * e->intermediate);
    if (e->gate_up_bias && e->gate_up_bias.trainable) {
      t.with_gradient_type(e->gate_up_bias, [&]<class G>(G) {
        auto const to = t.template gradient_of<G>(e->gate_up_bias);
        t.launch(kernel::grouped_column_sum<T, G>{groups(), d_gate_up, to.gradient, 2 * e->intermediate,
                                                  to.accumulate});
      });
    }
    t.launch(gemm(t, e->gate_up, d_gate_up, sorted, 2 * e->intermediate, x.columns(), backward_pass, {}));

    t.launch(kernel::route_backward<T>{s, logits, chosen, weights, d_weights, d_dense, d_logits});
    if (load.wanted) {
      t.launch(kernel::load_balancing_backward<T>{s, logits, chosen, load.padding, load.slope, d_logits});
    }
    t.launch(kernel::gemm<T>{.a = d_logits,
                             .b = t.weights(e->router.weight),
                             .c = to_x.gradient,
                             .m = s.rows,
                             .n = x.columns(),
                             .k = s.experts,
                             .accumulate = to_x.accumulate});
    t.launch(
        kernel::combine_rows<T>{sorted, places, to_x.gradient, to_x.gradient, s.rows, x.columns(), s.each});
    router_backward(t, d_logits);
    t.release(before);
    if (residual.gradient() == nullptr) {
      residual.adopt_gradient(y.gradient());
    } else {
      t.launch(kernel::add<T>{residual.gradient(), y.gradient(), residual.gradient(), y.count()});
    }
  }

  /// The work of the forward; a multiply-add counts as two FLOPs.
  [[nodiscard]] autograd::work forward_work() const {
    auto const s = shape();
    auto const hidden = static_cast<double>(x.columns()), rows = static_cast<double>(s.rows),
               choices = static_cast<double>(s.choices()), inner = static_cast<double>(e->intermediate);
    // Sorting, gating and combining the rows.
    double const moved = 3.0 * choices * (hidden + inner) + 2.0 * rows * hidden;
    return {.flops = 2.0 * hidden * rows * static_cast<double>(s.experts),
            .bytes = moved * sizeof(T),
            .grouped = 6.0 * hidden * choices * inner};
  }

private:
  static constexpr bool forward_pass = false, backward_pass = true;

  [[nodiscard]] kernel::routing_shape shape() const { return {x.rows(), e->count, e->each, e->normalised}; }
  [[nodiscard]] kernel::row_groups groups() const { return {starts, e->count, shape().choices()}; }

  /// Rows [choices, k] times the experts' matrices, transposed in the backward: [choices, n].
  kernel::grouped_gemm<T> gemm(tape<D, T>& t, parameter const& weight, T const* rows, T* out, std::int64_t k,
                               std::int64_t n, bool back, parameter const& bias) const {
    return {.of = groups(),
            .a = rows,
            .b = t.weights(weight),
            .c = out,
            .n = n,
            .k = k,
            .transpose_b = (e->layout == expert_layout::out_in) != back,
            .bias = bias ? t.weights(bias) : nullptr};
  }

  /// The gradient of the experts' matrices from inputs [choices, in] and gradients of outputs [choices, out];
  /// the layout decides which of the two comes first.
  void outer(tape<D, T>& t, parameter const& weight, T const* in, std::int64_t in_columns, T const* d_out,
             std::int64_t out_columns) const {
    if (!weight.trainable) {
      return;
    }
    bool const by_out = e->layout == expert_layout::out_in;
    t.with_gradient_type(weight, [&]<class G>(G) {
      auto const to = t.template gradient_of<G>(weight);
      t.launch(kernel::grouped_outer<T, G>{.of = groups(),
                                           .a = by_out ? d_out : in,
                                           .b = by_out ? in : d_out,
                                           .c = to.gradient,
                                           .m = by_out ? out_columns : in_columns,
                                           .n = by_out ? in_columns : out_columns,
                                           .accumulate = to.accumulate});
    });
  }

  /// Adds its part of the gradients of the routing weights, too.
  void down_bias_backward(tape<D, T>& t, T* d_dense) const {
    t.launch(kernel::gemm<T>{.a = y.gradient(),
                             .b = t.weights(e->down_bias),
                             .c = d_dense,
                             .m = x.rows(),
                             .n = e->count,
                             .k = x.columns(),
                             .transpose_b = true});
    if (e->down_bias.trainable) {
      gemm_of_columns(t, e->down_bias, dense, e->count, y.gradient(), x.columns());
    }
  }

  void router_backward(tape<D, T>& t, T const* d_logits) const {
    if (e->router.weight.trainable) {
      gemm_of_columns(t, e->router.weight, d_logits, e->count, x.value(), x.columns());
    }
    if (e->router.bias && e->router.bias.trainable) {
      t.with_gradient_type(e->router.bias, [&]<class G>(G) {
        auto const to = t.template gradient_of<G>(e->router.bias);
        t.launch(kernel::column_sum<T, G>{d_logits, to.gradient, x.rows(), e->count, to.accumulate});
      });
    }
  }

  /// The gradient of `p` from a^T b over all rows.
  void gemm_of_columns(tape<D, T>& t, parameter const& p, T const* a, std::int64_t a_columns, T const* b,
                       std::int64_t b_columns) const {
    t.with_gradient_type(p, [&]<class G>(G) {
      auto const to = t.template gradient_of<G>(p);
      t.launch(kernel::gemm<T, G>{.a = a,
                                  .b = b,
                                  .c = to.gradient,
                                  .m = a_columns,
                                  .n = b_columns,
                                  .k = x.rows(),
                                  .transpose_a = true,
                                  .accumulate = to.accumulate});
    });
  }
};

template <device_policy D, element T>
variable<D, T> experts::onto(variable<D, T> residual, variable<D, T> x, layer_load load) const {
  return x.on().run(experts_function<D, T>{x, residual, this, load});
}

}  // namespace superoffload::nn
