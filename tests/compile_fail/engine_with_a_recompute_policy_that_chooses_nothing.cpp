// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// error: a recompute policy must have what recompute::recompute_policy asks for
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

namespace so = superoffload;

struct own {
  using policy_category = so::category::recompute;
};
using engine = so::train::engine<so::model::llama, own>;
using device = engine::device_type;

int main() {}
