// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// How an expert's gate g and up u are combined into the input of its second GEMM.
enum class expert_gate : std::uint8_t {
  silu,    ///< g sigmoid(g) u; a row is all gates, then all ups
  clamped  ///< g' sigmoid(1.702 g') (u' + 1), g' = min(g, limit), u' = u within limits; gates and ups
           ///< alternate
};

/// The factor of the clamped gate inside its sigmoid: gpt-oss's constant, for which x sigmoid(1.702 x) is
/// close to GELU.
inline constexpr double clamped_gate_slope = 1.702;

/// out = gate(row) * weights[order[row]] for rows sorted by expert, in wide<T>, rounded once. The routing
/// weight is applied before the expert's second GEMM, so that the backward does not need the GEMM's result.
template <element T>
struct expert_swiglu_forward {
  expert_gate gate;           ///< the form of the gate, which also orders the columns of gate_up
  T const* gate_up;           ///< [rows, 2 * columns]
  wide<T> const* weights;     ///< [rows], by choice
  std::int32_t const* order;  ///< [rows] the choice of each row
  T* out;                     ///< [rows, columns]
  std::int64_t rows,          ///< choices of experts, in sorted order
      columns;                ///< the expert's width
  double limit = 0;           ///< of the clamped gate
};

/// The gradients d_weights[order[row]] = the sum of d_out * gate(row), in wide<T>, and d_gate_up; `out` is
/// recomputed. A clamped value has no gradient outside of its limits.
template <element T>
struct expert_swiglu_backward {
  expert_gate gate;           ///< that of the forward
  T const* d_out;             ///< [rows, columns]
  T const* gate_up;           ///< [rows, 2 * columns]
  wide<T> const* weights;     ///< [rows], by choice
  std::int32_t const* order;  ///< [rows]
  T* d_gate_up;               ///< [rows, 2 * columns]; may be gate_up itself
  T* out;                     ///< [rows, columns]; may be d_out itself
  wide<T>* d_weights;         ///< [rows], by choice
  std::int64_t rows,          ///< choices of experts, in sorted order
      columns;                ///< the expert's width
  double limit = 0;           ///< that of the forward
};

}  // namespace superoffload::kernel
