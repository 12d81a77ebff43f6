// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Weights are floating-point numbers.
// error: a precision must have what superoffload::precision_policy asks for
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

namespace so = superoffload;

struct own {
  using policy_category = so::category::precision;
  using element = int;
};
using engine = so::train::engine<so::model::llama, own>;
using device = engine::device_type;

int main() {}
