// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// error: a model architecture must have what model::architecture asks for
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

namespace so = superoffload;

struct own : so::model::llama {
  using base = so::model::llama;
  using base::base;
  void loss() const = delete;
};
using engine = so::train::engine<own>;
using device = engine::device_type;

int main() {}
