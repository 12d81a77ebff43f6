// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/policy.hpp>

/// What weights, activations and gradients are made of. State is fp32 in all of them.
namespace superoffload::precision {

struct fp32 {
  using policy_category = category::precision;
  using element = float;
};

struct bf16 {
  using policy_category = category::precision;
  using element = bfloat16;
};

}  // namespace superoffload::precision
