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

struct fp32 {
  using policy_category = category::precision;
  using element = float;
};
static_assert(precision_policy<fp32>);

struct bf16 {
  using policy_category = category::precision;
  using element = bfloat16;
};
static_assert(precision_policy<bf16>);

}  // namespace superoffload::precision
