// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/decoder.hpp>
#include <superoffload/model/llama.hpp>

#include <string>

namespace superoffload::model {

/// One layer of Phi-3 and Phi-4 (arXiv 2404.14219, 2412.08905): Llama's, with queries, keys and values as one
/// tensor, and gate and up as one.
struct phi3_block : llama_block {
  static std::string model_type() { return "phi3"; }  ///< the model_type in config.json

  /// Llama's layout under Phi's names.
  static phi3_block lay_out(config const& c, layer_layout& layer) {
    phi3_block made{
        {.attention_norm = layer.norm("input_layernorm"),
         .qkv = layer.linear({{"self_attn.qkv_proj", c.query_columns() + 2 * c.key_columns()}}, c.hidden),
         .o = layer.linear({{"self_attn.o_proj", c.hidden}}, c.query_columns()),
         .mlp_norm = layer.norm("post_attention_layernorm"),
         .mlp = {},
         .heads = layer.heads()}};
    auto const gate_up = layer.linear({{"mlp.gate_up_proj", 2 * c.intermediate}}, c.hidden);
    made.mlp = layer.mlp(gate_up, layer.linear({{"mlp.down_proj", c.hidden}}, c.intermediate));
    return made;
  }
};

/// Phi-3 and Phi-4 with rotation of the whole head.
using phi3 = decoder<phi3_block>;

static_assert(architecture<phi3>);

}  // namespace superoffload::model
