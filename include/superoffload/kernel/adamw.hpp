// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/kernel/stored_state.hpp>

#include <cstdint>

namespace superoffload::kernel {

/// The scalars of one optimizer step, computed in double on the host and rounded once, so that every
/// processor uses the same bits.
struct adamw_step {
  float decay;              ///< 1 - lr * weight_decay
  float beta1,              ///< decay rate of m
      beta2;                ///< decay rate of v
  float one_minus_beta1,    ///< rounded from double: not 1 - beta1 in float
      one_minus_beta2;      ///< likewise for beta2
  float step_size;          ///< lr / (1 - beta1^t)
  float inverse_root2;      ///< 1 / sqrt(1 - beta2^t)
  float epsilon;            ///< added to the root of v after its bias correction
  float factor;             ///< the clip factor, by which the gradient is multiplied
  std::uint32_t noise = 0;  ///< the noise_key of stochastic rounding: another one for every step and unit
};

/// AdamW (Loshchilov & Hutter, arXiv 1711.05101) of one element, or of a vector of elements: `Number` needs
/// +, -, *, / and `square_root`. No operation may be fused with another, so that every processor gives the
/// same bits.
///   g *= factor;  w *= decay;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g g
///   w -= step_size * m / (sqrt(v) * inverse_root2 + epsilon)
template <class Number, class SquareRoot>
SUPEROFFLOAD_ALWAYS_INLINE constexpr void adamw_rule(Number& w, Number& m, Number& v, Number g,
                                                     adamw_step const& s, SquareRoot square_root) {
  g = g * Number(s.factor);
  w = w * Number(s.decay);
  m = Number(s.beta1) * m + Number(s.one_minus_beta1) * g;
  v = Number(s.beta2) * v + Number(s.one_minus_beta2) * (g * g);
  w = w - Number(s.step_size) * (m / (square_root(v) * Number(s.inverse_root2) + Number(s.epsilon)));
}

/// One step of the rule over flat arrays of any length, whole blocks if the format has blocks; a NaN is
/// written as 0x7FC00000.
///
/// The master is stored together with its working weight, not twice. For bfloat16, `weight` holds
/// bfloat16::of_master of the master and `low` its low bits; together they restore it (bfloat16::master_of).
/// For float, `weight` is the master and `low` is null. A gradient in a wider type G is rounded to T first,
/// so that the result does not depend on the type in which the gradient was stored.
template <element T, element G = T, state_format F = state_format::float32>
struct adamw {
  T* weight;               ///< read and written: the working weights; for float the masters themselves
  low_bits<F>* low;        ///< read and written: the masters' low bits; null for float
  moments<F> m;            ///< read and written: mean of the gradients, before bias correction
  moments<F> v;            ///< read and written: mean of the squared gradients, before bias correction
  G const* gradient;       ///< of the step's loss, before clipping
  std::int64_t count;      ///< elements of each array
  adamw_step step;         ///< the same for every slice
  std::int64_t index = 0;  ///< of the first element in its unit, for stochastic rounding

  /// The same step for elements `first` to `first + size - 1`; slices are independent.
  [[nodiscard]] constexpr adamw slice(std::int64_t first, std::int64_t size) const {
    return {weight + first,
            low == nullptr ? nullptr : low + first,
            m + first,
            v + first,
            gradient + first,
            size,
            step,
            index + first};
  }
};

}  // namespace superoffload::kernel
