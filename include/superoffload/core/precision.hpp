// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/policy.hpp>

namespace superoffload {

/// The type of weights, activations and gradients: `element`, one of the types in core/dtype.hpp.
template <class P>
concept precision_policy = policy_of<P, category::precision> && element<typename P::element>;

}  // namespace superoffload

/// Optimizer state is fp32 in all of them.
namespace superoffload::precision {

/// Weights, activations and gradients are float.
struct fp32 {
  using policy_category = category::precision;  ///< makes it a precision_policy
  using element = float;                        ///< of weights, activations and gradients
};
static_assert(precision_policy<fp32>);

/// Weights, activations and gradients are bfloat16; sums, statistics and losses are float.
struct bf16 {
  using policy_category = category::precision;  ///< makes it a precision_policy
  using element = bfloat16;                     ///< of weights, activations and gradients
};
static_assert(precision_policy<bf16>);

}  // namespace superoffload::precision
