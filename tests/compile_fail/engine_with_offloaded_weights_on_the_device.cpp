// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Nothing would update weights in host memory.
// error: needs offload::super
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/offloaded.hpp>

namespace so = superoffload;

using engine = so::train::engine<so::model::llama, so::zero::offloaded>;
using device = engine::device_type;

int main() {}
