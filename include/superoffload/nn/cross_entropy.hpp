// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/kernel/cross_entropy.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/nn/batch.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace superoffload::nn {

using autograd::parameter;
using autograd::tape;
using autograd::variable;

/// The result of a loss: one double in device memory, the sum of the losses of all targets (not yet divided).
struct loss_sum {
  double* total = nullptr;  ///< one number; valid until the tape's next reset
};

/// Head and cross-entropy together, in chunks of tokens, so that the logits of the whole batch never exist at
/// once. While recording, the same pass computes the gradient: d_x in a new matrix, the head's in its
/// parameter. Logits are computed in wide<T>.
template <device_policy D, element T>
struct head_loss_function {
  variable<D, T> x;  ///< [rows, columns], the last hidden state
  parameter head;    ///< [vocabulary, columns]
  batch const* b;    ///< read by the forward only
  loss_sum y{};      ///< written by the forward
  T* d_x = nullptr;  ///< [rows, columns], already of the divided loss; null without a backward

  /// Tokens whose logits exist at a time: as many as the device's limit for the two buffers of a chunk
  /// allows. It is a power of two: efficient for GEMMs, and most batches leave no small remainder.
  static std::int64_t chunk_rows(std::int64_t rows, std::int64_t vocabulary) {
    auto const affordable = static_cast<std::int64_t>(D::logits_chunk_bytes) /
                            (vocabulary * static_cast<std::int64_t>(sizeof(wide<T>) + sizeof(T)));
    auto const chunk = std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(64, affordable)));
    return std::min(rows, static_cast<std::int64_t>(chunk));
  }

  /// Computes loss and gradients, chunk by chunk. The buffers of a chunk are free afterwards.
  void forward(tape<D, T>& t) {
    bool const with_gradient = t.recording();
    y.total = t.template allocate<double>(1);
    if (with_gradient) {
      d_x = t.template allocate<T>(x.count());
    }
    auto const mark = t.mark();
    auto const chunk = chunk_rows(b->rows, head.rows);
    auto* const logits = t.template allocate<wide<T>>(chunk * head.rows);
    auto* const d_logits = !with_gradient ? nullptr : [&] {
      if constexpr (std::is_same_v<T, wide<T>>) {
        return logits;
      } else {
        return t.template allocate<T>(chunk * head.rows);
      }
    }();
    auto* const row_loss = t.template allocate<wide<T>>(b->rows);
    std::int64_t begin = 0;
    do {  // once even without rows: the head's gradient is zero then, not absent
      one_chunk(t, begin, std::min(chunk, b->rows - begin), logits, d_logits, row_loss + begin);
      begin += chunk;
    } while (begin < b->rows);
    t.launch(kernel::sum<wide<T>>{row_loss, y.total, b->rows});
    t.release(mark);
  }

  /// Hands over the gradient that the forward computed.
  void backward(tape<D, T>&) { x.adopt_gradient(d_x); }

private:
  void one_chunk(tape<D, T>& t, std::int64_t begin, std::int64_t rows, wide<T>* logits, T* d_logits,
                 wide<T>* row_loss) {
    T const* const chunk = x.value() + begin * x.columns();
    t.launch(kernel::gemm<T, wide<T>>{.a = chunk,
                                      .b = t.weights(head),
                                      .c = logits,
                                      .m = rows,
                                      .n = head.rows,
                                      .k = head.columns,
                                      .transpose_b = true});
    auto const* const targets = t.dry() ? nullptr : b->targets + begin;
    t.launch(kernel::cross_entropy<T>{logits, targets, row_loss, d_logits, rows, head.rows,
                                      1.0 / static_cast<double>(b->divisor)});
    if (d_logits == nullptr) {
      return;
    }
    t.launch(kernel::gemm<T>{.a = d_logits,
                             .b = t.weights(head),
                             .c = d_x + begin * x.columns(),
                             .m = rows,
                             .n = head.columns,
                             .k = head.rows});
    if (!head.trainable) {
      return;
    }
    t.with_gradient_type(head, [&]<class G>(G) {
      auto const to = t.template gradient_of<G>(head);
      t.launch(kernel::gemm<T, G>{.a = d_logits,
                                  .b = chunk,
                                  .c = to.gradient,
                                  .m = head.rows,
                                  .n = head.columns,
                                  .k = rows,
                                  .transpose_a = true,
                                  .accumulate = to.accumulate});
    });
  }
};

/// The sum of the cross-entropies of x W^T [rows, vocabulary] against the batch's targets. Its gradient is
/// that of the sum divided by batch.divisor. While recording, the scope around it must be entered for
/// pass::both.
template <device_policy D, element T>
loss_sum head_loss(variable<D, T> x, parameter head, batch const& b) {
  return x.on().run(head_loss_function<D, T>{x, head, &b});
}

}  // namespace superoffload::nn
