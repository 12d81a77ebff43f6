// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A type that is no policy is a mistake, not a setting.
// error: every argument of train::engine is a policy: a type with policy_category
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

using engine = superoffload::train::engine<superoffload::model::llama, float>;
using device = engine::device_type;

int main() {}
