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

template <device_policy D, element T>
struct embedding_function {
  parameter table;
  batch const* b;
  std::int32_t padding;
  variable<D, T> y{};

  void forward(tape<D, T>& t) {
    y = t.make(b->rows, table.columns);
    t.launch(kernel::embedding_forward<T>{t.weights(table), b->tokens, y.value(), b->rows, table.columns});
  }

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
  parameter table;
  std::int32_t padding = -1;  ///< the token whose row gets no gradient from this layer, -1: none

  /// The batch must outlive the backward.
  template <device_policy D, element T>
  variable<D, T> operator()(tape<D, T>& t, batch const& b) const {
    return t.run(embedding_function<D, T>{table, &b, padding});
  }
};

}  // namespace superoffload::nn
