// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/nn/batch.hpp>

#include <algorithm>
#include <cmath>

namespace superoffload::nn {

using autograd::tape;
using autograd::variable;

struct attention_heads {
  std::int32_t heads, kv_heads, head_dim;
  std::int32_t window = 0;
};

template <device_policy D, element T>
struct attention_function {
  variable<D, T> qkv;
  batch const* b;
  attention_heads h;
  variable<D, T> y{};
  wide<T>* log_sum_exp = nullptr;

  void forward(tape<D, T>& t) {
    y = t.make(qkv.rows(), std::int64_t{h.heads} * h.head_dim);
    log_sum_exp = t.template allocate<wide<T>>(h.heads * qkv.rows());
    t.launch_with_scratch(kernel::attention_forward<T>{shape(), qkv.value(), y.value(), log_sum_exp});
  }

  void backward(tape<D, T>& t) {
    auto const to = t.gradient_of(qkv);
    expect(!to.accumulate, exit_code::internal,
           "the queries, keys and values of attention have one use only");
    auto* const delta = t.template allocate<wide<T>>(h.heads * qkv.rows());
    t.launch_with_scratch(kernel::attention_backward<T>{shape(), qkv.value(), y.value(), y.gradient(),
                                                        log_sum_exp, delta, to.gradient});
  }

  /// An estimate: as if all documents were as long as the longest.
  [[nodiscard]] autograd::work forward_work() const {
    double const visible = h.window > 0 ? std::min<double>(h.window, 0.5 * b->longest) : 0.5 * b->longest;
    return {.attention = 4.0 * static_cast<double>(y.count()) * visible};
  }

private:
  [[nodiscard]] kernel::attention_shape shape() const {
    return {.starts = b->starts,
            .documents = b->documents,
            .rows = qkv.rows(),
            .heads = h.heads,
            .kv_heads = h.kv_heads,
            .head_dim = h.head_dim,
            .longest = b->longest,
            .window = h.window,
            .scale = 1.0 / std::sqrt(static_cast<double>(h.head_dim))};
  }
};

/// Causal attention inside each document: qkv [rows, (heads + 2 kv_heads) * head_dim] -> [rows, heads *
/// head_dim].
template <device_policy D, element T>
variable<D, T> attention(variable<D, T> qkv, batch const& b, attention_heads h) {
  return qkv.on().run(attention_function<D, T>{qkv, &b, h});
}

}  // namespace superoffload::nn
