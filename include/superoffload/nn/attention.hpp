// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/column_parts.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/nn/batch.hpp>

#include <algorithm>
#include <array>
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
/// If several ranks share the rows (batch::sequence_ranks), each rank computes a part of the heads over all
/// rows: queries, keys and values go from parts of rows to parts of heads, and results back (DeepSpeed
/// Ulysses, arXiv 2309.14509). A head's results have the bits that one rank would give them.
template <device_policy D, element T>
struct attention_function {
  variable<D, T> qkv;                ///< [rows, (heads + 2 kv_heads) * head_dim]; read by this function only
  batch const* b;                    ///< must outlive the backward
  attention_heads h;                 ///< their number divides the columns of qkv
  std::optional<parameter> sinks{};  ///< [heads], or none
  kernel::dropout_mask dropout{};    ///< of the attention weights; the same for forward and backward
  variable<D, T> y{};                ///< [rows, heads * head_dim]
  wide<T>* log_sum_exp = nullptr;    ///< [heads, rows], kept for the backward
  /// Where ranks share the rows: qkv and y of this rank's heads, [all rows, columns of these heads], kept for
  /// the backward.
  T *qkv_of_heads = nullptr, *y_of_heads = nullptr;

  /// Makes y and log_sum_exp, with scratch memory that is free afterwards.
  void forward(tape<D, T>& t) {
    y = t.make(qkv.rows(), y_columns());
    log_sum_exp = t.template allocate<wide<T>>(h.heads * qkv.rows());
    if (shares_rows()) {
      qkv_of_heads = t.template allocate<T>(qkv.count());
      y_of_heads = t.template allocate<T>(y.count());
      to_heads(t, qkv.value(), qkv_of_heads, qkv_pieces());
    }
    t.launch_with_scratch(
        kernel::attention_forward<T>{shape(), own_qkv(), own_y(), log_sum_exp, sink_values(t)});
    if (shares_rows()) {
      to_rows(t, y_of_heads, y.value(), y_pieces());
    }
  }

  /// The gradients of qkv and of the sinks. \throws error(internal) when another function has written qkv's.
  void backward(tape<D, T>& t) {
    auto const to = t.gradient_of(qkv);
    expect(!to.accumulate, exit_code::internal,
           "the queries, keys and values of attention have one use only");
    auto* const delta = t.template allocate<wide<T>>(h.heads * qkv.rows());
    T const* d_y = y.gradient();
    T* d_of_heads = to.gradient;
    if (shares_rows()) {
      auto* const received = t.template allocate<T>(y.count());
      to_heads(t, y.gradient(), received, y_pieces());
      d_y = received;
      d_of_heads = t.template allocate<T>(qkv.count());
    }
    t.launch_with_scratch(kernel::attention_backward<T>{shape(), own_qkv(), own_y(), d_y, log_sum_exp, delta,
                                                        d_of_heads, sink_values(t)});
    if (shares_rows()) {
      to_rows(t, d_of_heads, to.gradient, qkv_pieces());
    }
    if (sinks && sinks->trainable) {
      add_to_sinks(t, d_y);
    }
  }

  /// An estimate: as if all documents were as long as the longest one.
  [[nodiscard]] autograd::work forward_work() const {
    double const visible = h.window > 0 ? std::min<double>(h.window, 0.5 * b->longest) : 0.5 * b->longest;
    autograd::work all{.attention = 4.0 * static_cast<double>(y.count()) * visible};
    if (shares_rows()) {
      auto const bytes = static_cast<double>(sizeof(T)) * static_cast<double>(qkv.count() + y.count());
      all.bytes = 2.0 * bytes;
      all.exchanged = bytes * (1.0 - 1.0 / b->sequence_ranks);
    }
    return all;
  }

private:
  using pieces = std::array<std::int64_t, 3>;  ///< bytes of a row for one rank: kernel::column_parts

  [[nodiscard]] bool shares_rows() const { return b->sequence_ranks > 1; }
  /// @{
  /// Of this rank's heads. A recompute may have moved qkv and y since the forward.
  [[nodiscard]] T const* own_qkv() const { return shares_rows() ? qkv_of_heads : qkv.value(); }
  [[nodiscard]] T* own_y() const { return shares_rows() ? y_of_heads : y.value(); }
  /// @}
  [[nodiscard]] std::int64_t y_columns() const { return std::int64_t{h.heads} * h.head_dim; }
  [[nodiscard]] pieces qkv_pieces() const {
    auto const of = shape();
    auto const head = static_cast<std::int64_t>(sizeof(T)) * h.head_dim;
    return {of.heads * head, of.kv_heads * head, of.kv_heads * head};
  }
  [[nodiscard]] pieces y_pieces() const { return {qkv_pieces()[0], 0, 0}; }
  [[nodiscard]] kernel::column_parts parts(void const* from, void* to, pieces const& p, bool joins) const {
    return {.from = from,
            .to = to,
            .piece_bytes = p,
            .rows = qkv.rows(),
            .parts = b->sequence_ranks,
            .joins = joins};
  }
  [[nodiscard]] std::size_t part_bytes(pieces const& p) const {
    return static_cast<std::size_t>(parts(nullptr, nullptr, p, false).row_bytes() * qkv.rows());
  }

  /// From this rank's rows of all heads to all rows of this rank's heads.
  void to_heads(tape<D, T>& t, T const* of_rows, T* of_own_heads, pieces const& p) const {
    auto const before = t.mark();
    auto* const sent = scratch_for(t, p);
    t.launch(parts(of_rows, sent, p, false));
    t.exchange(sent, of_own_heads, part_bytes(p));
    t.release(before);
  }
  /// The reverse.
  void to_rows(tape<D, T>& t, T const* of_own_heads, T* of_rows, pieces const& p) const {
    auto const before = t.mark();
    auto* const received = scratch_for(t, p);
    t.exchange(of_own_heads, received, part_bytes(p));
    t.launch(parts(received, of_rows, p, true));
    t.release(before);
  }
  [[nodiscard]] std::byte* scratch_for(tape<D, T>& t, pieces const& p) const {
    return t.template allocate<std::byte>(static_cast<std::int64_t>(part_bytes(p)) * b->sequence_ranks);
  }

  /// Each rank has the sinks of its heads, and adds nothing to the others'.
  void add_to_sinks(tape<D, T>& t, T const* d_y) const {
    auto const of = shape();
    auto const blocks = kernel::attention_sinks_blocks(of.rows);
    auto* const partial = t.template allocate<wide<T>>(blocks * of.heads);
    t.launch(kernel::attention_sinks_backward<T>{of, own_y(), d_y, log_sum_exp, sink_values(t), partial});
    t.with_gradient_type(*sinks, [&]<class G>(G) {
      auto const d_sinks = t.template gradient_of<G>(*sinks);
      if (shares_rows() && !d_sinks.accumulate) {
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
            .rows = qkv.rows() * b->sequence_ranks,
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
  return qkv.on().run(attention_function<D, T>{qkv, &b, h, sinks, dropout});
}

}  // namespace superoffload::nn
