// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// row_loss[r] = log(sum exp(logits[r])) - logits[r, targets[r]], and its gradient times `scale`:
/// d_logits = (softmax(logits) - onehot(target)) * scale. Rows without a target (-1) have loss and gradient
/// zero.
template <element T>
struct cross_entropy {
  wide<T> const* logits;        ///< [rows, vocabulary]
  std::int32_t const* targets;  ///< [rows], each -1 or in [0, vocabulary)
  wide<T>* row_loss;            ///< [rows]
  T* d_logits;                  ///< [rows, vocabulary] or null: not wanted; where T is wide<T>, may be logits
  std::int64_t rows,            ///< tokens; may be 0
      vocabulary;               ///< logits of a row
  double scale;                 ///< factor of the gradient alone; in a step 1 / its label tokens
};

}  // namespace superoffload::kernel
