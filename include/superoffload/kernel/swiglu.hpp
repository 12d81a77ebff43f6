// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// out = silu(gate) * up, silu(x) = x / (1 + exp(-x)), in wide<T>, rounded once (Shazeer, arXiv 2002.05202).
template <element T>
struct swiglu_forward {
  T const* gate_up;   ///< [rows, 2 * columns]: gate, then up
  T* out;             ///< [rows, columns]
  std::int64_t rows,  ///< tokens; may be 0
      columns;        ///< of gate, of up and of the result
};

/// The gradients of swiglu; its result is recomputed, with the same bits.
template <element T>
struct swiglu_backward {
  T const* d_out;     ///< [rows, columns]
  T const* gate_up;   ///< [rows, 2 * columns]
  T* d_gate_up;       ///< [rows, 2 * columns]; may be gate_up itself
  T* out;             ///< [rows, columns]; may be d_out itself
  std::int64_t rows,  ///< those of the forward
      columns;        ///< of gate, of up and of the result
};

}  // namespace superoffload::kernel
