// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// An engine must know what it trains.
// error: train::engine needs exactly one model architecture
#include <superoffload/train/engine.hpp>

using engine = superoffload::train::engine<superoffload::precision::bf16>;
using device = engine::device_type;

int main() {}
