// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Two profile policies would be ambiguous.
// error: train::engine takes at most one profile policy
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

namespace so = superoffload;

struct another {
  using policy_category = so::category::profile;
  struct session {};
};
using engine = so::train::engine<so::model::llama, so::profile::none, another>;
using device = engine::device_type;

int main() {}
