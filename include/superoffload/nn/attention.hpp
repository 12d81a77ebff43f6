// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/nn/batch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace superoffload::nn {

using autograd::parameter;
using autograd::tape;
using autograd::variable;

/// The heads of a layer; see kernel::attention_shape.
struct attention_heads {
  std::int32_t heads,       ///< query heads, a multiple of kv_heads
      kv_heads,             ///< key heads, and as many value heads
      head_dim;             ///< elements of a head
  std::int32_t window = 0;  ///< last keys that a query sees; 0: all of its document
};

/// The tape's function behind nn::attention.
template <device_policy D, element T>
struct attention_function {
  variable<D, T> qkv;                ///< [rows, (heads + 2 kv_heads) * head_dim]; read by this function only
  batch const* b;                    ///< must outlive the backward
  attention_heads h;                 ///< their number divides the columns of qkv
  std::optional<parameter> sinks{};  ///< [heads], or none
  kernel::dropout_mask dropout{};    ///< of the attention weights; the same for forward and backward
  variable<D, T> y{};                ///< [rows, heads * head_dim]
  wide<T>* log_sum_exp = nullptr;    ///< [heads, rows], kept for the backward

  /// Makes y and log_sum_exp, with scratch memory that is free afterwards.
  void forward(tape<D, T>& t) {
    y = t.make(qkv.rows(), std::int64_t{h.heads} * h.head_dim);
    log_sum_exp = t.template allocate<wide<T>>(h.heads * qkv.rows());
    t.launch_with_scratch(
        kernel::attention_forward<T>{shape(), qkv.value(), y.value(), log_sum_exp, sink_values(t)});
  }

  /// The gradients of qkv and of the sinks. \throws error(internal) when another function has written qkv's.
  void backward(tape<D, T>& t) {
    auto const to = t.gradient_of(qkv);
    expect(!to.accumulate, exit_code::internal,
           "the queries, keys and values of attention have one use only");
    auto* const delta = t.template allocate<wide<T>>(h.heads * qkv.rows());
    t.launch_with_scratch(kernel::attention_backward<T>{shape(), qkv.value(), y.value(), y.gradient(),
                                                        log_sum_exp, delta, to.gradient, sink_values(t)});
    if (!sinks || !sinks->trainable) {
      return;
    }
    auto const blocks = kernel::attention_sinks_blocks(qkv.rows());
    auto* const partial = t.template allocate<wide<T>>(blocks * h.heads);
    t.launch(kernel::attention_sinks_backward<T>{shape(), y.value(), y.gradient(), log_sum_exp,
                                                 sink_values(t), partial});
    t.with_gradient_type(*sinks, [&]<class G>(G) {
      auto const d_sinks = t.template gradient_of<G>(*sinks);
      t.launch(
          kernel::column_sum<wide<T>, G>{partial, d_sinks.gradient, blocks, h.heads, d_sinks.accumulate});
    });
  }

  /// An estimate: as if all documents were as long as the longest one.
  [[nodiscard]] autograd::work forward_work() const {
    double const visible = h.window > 0 ? std::min<double>(h.window, 0.5 * b->longest) : 0.5 * b->longest;
    return {.attention = 4.0 * static_cast<double>(y.count()) * visible};
  }

private:
  [[nodiscard]] T const* sink_values(tape<D, T>& t) const { return sinks ? t.weights(*sinks) : nullptr; }
  [[nodiscard]] kernel::attention_shape shape() const {
    return {.starts = b->starts,
            .documents = b->documents,
            .rows = qkv.rows(),
            .heads = h.heads,
            .kv_heads = h.kv_heads,
            .head_dim = h.head_dim,
            .longest = b->longest,
            .window = h.window,
            .scale = 1.0 / std::sqrt(static_cast<double>(h.head_dim)),
            .dropout = dropout};
  }
};

/// Causal attention inside each document: qkv [rows, (heads + 2 kv_heads) * head_dim] -> [rows, heads *
/// head_dim]. `sinks`, [heads], are one more score of each head that carries no value; `dropout` applies to
/// the attention weights.
template <device_policy D, element T>
variable<D, T> attention(variable<D, T> qkv, batch const& b, attention_heads h,
                         std::optional<parameter> sinks = std::nullopt, kernel::dropout_mask dropout = {}) {
  return qkv.on().run(attention_function<D, T>{qkv, &b, h, sinks, dropout});
}

}  // namespace superoffload::nn
