// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/nn/row_exchange.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
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
///
/// If several ranks share the rows (batch::sequence_ranks), each computes a part of the heads over all rows.
/// A head's results have the bits that one rank would give them.
template <device_policy D, element T>
struct attention_function {
  variable<D, T> qkv;                ///< [rows, (heads + 2 kv_heads) * head_dim] of this rank's heads
  batch const* b;                    ///< must outlive the backward
  attention_heads h;                 ///< of all ranks that share the rows; divisible by their number
  std::optional<parameter> sinks{};  ///< [heads] of all ranks, or none
  kernel::dropout_mask dropout{};    ///< of the attention weights; the same for forward and backward
  variable<D, T> y{};                ///< [rows, heads * head_dim] of this rank's heads
  wide<T>* log_sum_exp = nullptr;    ///< [heads, rows] of this rank's heads, kept for the backward

  /// Makes y and log_sum_exp, with scratch memory that is free afterwards.
  void forward(tape<D, T>& t) {
    auto const of = shape();
    y = t.make(of.rows, std::int64_t{of.heads} * of.head_dim);
    log_sum_exp = t.template allocate<wide<T>>(of.heads * of.rows);
    t.launch_with_scratch(
        kernel::attention_forward<T>{of, qkv.value(), y.value(), log_sum_exp, sink_values(t)});
  }

  /// The gradients of qkv and of the sinks. \throws error(internal) when another function has written qkv's.
  void backward(tape<D, T>& t) {
    auto const of = shape();
    auto const to = t.gradient_of(qkv);
    expect(!to.accumulate, exit_code::internal,
           "the queries, keys and values of attention have one use only");
    auto* const delta = t.template allocate<wide<T>>(of.heads * of.rows);
    t.launch_with_scratch(kernel::attention_backward<T>{of, qkv.value(), y.value(), y.gradient(), log_sum_exp,
                                                        delta, to.gradient, sink_values(t)});
    if (sinks && sinks->trainable) {
      add_to_sinks(t);
    }
  }

  /// An estimate: as if all documents were as long as the longest one.
  [[nodiscard]] autograd::work forward_work() const {
    double const visible = h.window > 0 ? std::min<double>(h.window, 0.5 * b->longest) : 0.5 * b->longest;
    return {.attention = 4.0 * static_cast<double>(y.count()) * visible};
  }

private:
  /// Each rank has the sinks of its heads, and adds nothing to the others'.
  void add_to_sinks(tape<D, T>& t) const {
    auto const of = shape();
    auto const blocks = kernel::attention_sinks_blocks(of.rows);
    auto* const partial = t.template allocate<wide<T>>(blocks * of.heads);
    t.launch(kernel::attention_sinks_backward<T>{of, y.value(), y.gradient(), log_sum_exp, sink_values(t),
                                                 partial});
    t.with_gradient_type(*sinks, [&]<class G>(G) {
      auto const d_sinks = t.template gradient_of<G>(*sinks);
      if (b->sequence_ranks > 1 && !d_sinks.accumulate) {
        t.fill_zero(d_sinks.gradient, static_cast<std::size_t>(h.heads) * sizeof(G));
      }
      t.launch(kernel::column_sum<wide<T>, G>{partial, d_sinks.gradient + first_head(), blocks, of.heads,
                                              d_sinks.accumulate});
    });
  }

  [[nodiscard]] std::int32_t first_head() const { return b->sequence_rank * (h.heads / b->sequence_ranks); }
  [[nodiscard]] T const* sink_values(tape<D, T>& t) const {
    return sinks ? t.weights(*sinks) + first_head() : nullptr;
  }
  /// Of this rank's heads.
  [[nodiscard]] kernel::attention_shape shape() const {
    return {.starts = b->starts,
            .documents = b->documents,
            .rows = qkv.rows(),
            .heads = h.heads / b->sequence_ranks,
            .kv_heads = h.kv_heads / b->sequence_ranks,
            .head_dim = h.head_dim,
            .longest = b->longest,
            .window = h.window,
            .scale = 1.0 / std::sqrt(static_cast<double>(h.head_dim)),
            .dropout = dropout};
  }
};

/// Causal attention inside each document, also across the ranks that share the rows: qkv [rows, (heads + 2
/// kv_heads) * head_dim] -> [rows, heads * head_dim]. `sinks`, [heads], are one more score of each head that
/// carries no value; `dropout` applies to the attention weights.
template <device_policy D, element T>
variable<D, T> attention(variable<D, T> qkv, batch const& b, attention_heads h,
                         std::optional<parameter> sinks = std::nullopt, kernel::dropout_mask dropout = {}) {
  auto const attend = [&](variable<D, T> x) {
    return x.on().run(attention_function<D, T>{x, &b, h, sinks, dropout});
  };
  if (b.sequence_ranks == 1) {
    return attend(qkv);
  }
  auto const columns = [&](std::int32_t heads) { return std::int64_t{heads} * h.head_dim; };
  auto const y = attend(
      columns_of_rank(qkv, b.sequence_ranks, {columns(h.heads), columns(h.kv_heads), columns(h.kv_heads)}));
  return rows_of_rank(y, b.sequence_ranks, {columns(h.heads), 0, 0});
}

}  // namespace superoffload::nn
