// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Who would update weights in host memory?
// error: zero::streamed needs offload::super
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/streamed.hpp>

namespace so = superoffload;

using engine = so::train::engine<so::model::llama, so::zero::streamed>;
using device = engine::device_type;

int main() {}
