// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Two precisions would be ambiguous.
// error: train::engine takes at most one precision
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

namespace so = superoffload;

using engine = so::train::engine<so::model::llama, so::precision::bf16, so::precision::fp32>;
using device = engine::device_type;

int main() {}
