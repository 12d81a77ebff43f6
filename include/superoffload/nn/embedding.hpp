// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/embedding.hpp>
#include <superoffload/nn/batch.hpp>

#include <cstdint>

namespace superoffload::nn {

using autograd::parameter;
using autograd::tape;
using autograd::variable;

/// The tape's function behind nn::embedding.
template <device_policy D, element T>
struct embedding_function {
  parameter table;       ///< [vocabulary, columns]
  batch const* b;        ///< must outlive the backward
  std::int32_t padding;  ///< the token whose row gets no gradient, -1: none
  variable<D, T> y{};    ///< [rows, columns]

  /// Looks up the batch's tokens.
  void forward(tape<D, T>& t) {
    y = t.make(b->rows, table.columns);
    t.launch(kernel::embedding_forward<T>{t.weights(table), b->tokens, y.value(), b->rows, table.columns});
  }

  /// Adds y's gradient to the rows of the table's; the first writer of a step zeroes the whole table's first.
  void backward(tape<D, T>& t) {
    if (!table.trainable) {
      return;
    }
    t.with_gradient_type(table, [&]<class G>(G) {
      auto const to = t.template gradient_of<G>(table);
      if (!to.accumulate) {
        t.fill_zero(to.gradient, static_cast<std::size_t>(table.count()) * sizeof(G));
      }
      t.launch(kernel::embedding_backward<T, G>{y.gradient(), b->order, b->segment_starts, b->segment_ids,
                                                to.gradient, b->segments, table.columns, padding});
    });
  }
};

/// The rows of a table [vocabulary, columns] by token id.
struct embedding {
  parameter table;            ///< [vocabulary, columns]
  std::int32_t padding = -1;  ///< the token whose row gets no gradient from this layer, -1: none

  /// The batch must outlive the backward.
  template <device_policy D, element T>
  variable<D, T> operator()(tape<D, T>& t, batch const& b) const {
    return t.run(embedding_function<D, T>{table, &b, padding});
  }
};

}  // namespace superoffload::nn
