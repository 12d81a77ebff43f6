// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/llama.hpp>

#include <string>

namespace superoffload::model {

/// One layer of Mistral (arXiv 2310.06825): Llama's, under the same names, with attention that sees the last
/// sliding_window tokens of a document if the configuration has a window (config::windows).
struct mistral_block : llama_block {
  static std::string model_type() { return "mistral"; }  ///< the model_type in config.json

  /// Llama's layout; the window comes with the heads.
  static mistral_block lay_out(config const& c, layer_layout& layer) {
    return {llama_block::lay_out(c, layer)};
  }
};

/// Mistral 7B and models with its layout (Mistral Nemo, Mistral Small): any size, with or without a window.
using mistral = decoder<mistral_block>;

static_assert(architecture<mistral>);

}  // namespace superoffload::model
