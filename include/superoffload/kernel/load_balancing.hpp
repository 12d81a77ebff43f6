// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/kernel/routing.hpp>

#include <cstdint>

namespace superoffload::kernel {

// The load-balancing loss of routers: equations 4 to 6 of the Switch Transformer (arXiv 2101.03961), for
// several experts of a token and over all layers, as transformers' load_balancing_loss_func has it. With N
// rows in all layers together, f_e = choices of expert e / N and P_e = sum of the probabilities of expert e /
// N, the loss is experts * sum of f_e P_e. It is 0 without rows.

/// Rows that one partial load covers.
inline constexpr std::int64_t load_rows = 256;

/// Partial loads of `rows` rows; the last may cover fewer.
constexpr std::int64_t load_pieces(std::int64_t rows) { return (rows + load_rows - 1) / load_rows; }

/// The load of the experts by each piece of load_rows rows: how often they were chosen, and the sums of their
/// probabilities, which are the softmax over all logits of a row, whatever shape.normalised says.
/// Probabilities are computed in wide<T> and added in double, in the order of the rows.
template <element T>
struct expert_load {
  routing_shape shape;          ///< that of route_forward
  T const* logits;              ///< [rows, experts]
  std::int32_t const* chosen;   ///< [rows * each], from route_forward
  std::int32_t const* padding;  ///< [rows], not 0: the row does not count; or null: every row counts
  double* load;                 ///< [load_pieces(rows), 2, experts]: choices, then probabilities
};

/// total += divisor * weight * the loss of all partial loads, which are added in their order. `slope` is the
/// derivative of weight * loss by a probability of each expert, which is the same for every row that counts.
struct load_balancing_loss {
  double const* load;  ///< [parts, 2, experts], of all layers
  std::int64_t parts,  ///< may be 0
      experts;         ///< 1 or more
  std::int32_t each;   ///< experts of a row
  double weight,       ///< of this loss beside the mean loss of tokens
      divisor;         ///< of `total`, which is a sum
  double* slope;       ///< [experts]
  double* total;       ///< one number
};

/// Adds to d_logits the gradient of the loss: p_e (slope_e - sum of p_k slope_k) for every row that counts,
/// with the probabilities p of expert_load, in wide<T>, rounded once.
template <element T>
struct load_balancing_backward {
  routing_shape shape;          ///< that of route_forward
  T const* logits;              ///< [rows, experts]
  std::int32_t const* chosen;   ///< [rows * each], from route_forward
  std::int32_t const* padding;  ///< as in expert_load
  double const* slope;          ///< [experts]
  T* d_logits;                  ///< [rows, experts]
};

}  // namespace superoffload::kernel
