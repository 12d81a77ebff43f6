// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/llama.hpp>

#include <string>

namespace superoffload::model {

/// One layer of Qwen2 and Qwen2.5 (arXiv 2407.10671, 2412.15115): Llama's, under the same names, with biases
/// of queries, keys and values, and with a window on the layers for which the configuration has one
/// (config::windows).
struct qwen2_block : llama_block {
  static std::string model_type() { return "qwen2"; }  ///< the model_type in config.json

  /// Llama's layout; biases and windows are those of the configuration.
  static qwen2_block lay_out(config const& c, layer_layout& layer) {
    return {llama_block::lay_out(c, layer)};
  }
};

/// Qwen2 and Qwen2.5 without experts, tied or untied head.
using qwen2 = decoder<qwen2_block>;

static_assert(architecture<qwen2>);

}  // namespace superoffload::model
