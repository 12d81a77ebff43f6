// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/policy.hpp>

/// What of a forward is kept for the backward, and what is computed again.
namespace superoffload::recompute {

/// Every activation is kept.
struct none {
  using policy_category = category::recompute;
  static constexpr bool blocks(bool) { return false; }
};

/// Only the inputs of the blocks are kept.
struct every_block {
  using policy_category = category::recompute;
  static constexpr bool blocks(bool) { return true; }
};

/// engine_options::recompute_blocks decides.
struct configured {
  using policy_category = category::recompute;
  static constexpr bool blocks(bool wanted) { return wanted; }
};

}  // namespace superoffload::recompute
