// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/decoder.hpp>

#include <string>
#include <tuple>

namespace superoffload::model {

/// One layer of Llama 2 and 3 (arXiv 2407.21783): grouped-query attention and a gated MLP, each after a norm
/// and added to the residual.
struct llama_block {
  nn::rms_norm attention_norm;  ///< before attention
  nn::linear qkv,               ///< [(heads + 2 kv_heads) * head_dim, hidden]
      o;                        ///< [hidden, heads * head_dim]
  nn::rms_norm mlp_norm;        ///< before the MLP
  nn::gated_mlp mlp;            ///< of `intermediate` columns
  nn::attention_heads heads;    ///< of attention

  static std::string model_type() { return "llama"; }  ///< the model_type in config.json
  /// References to the layers with parameters, for decoder.
  auto parts() { return std::tie(attention_norm, qkv, o, mlp_norm, mlp); }

  /// The layer's parameters in `layer`'s unit, for a checked configuration.
  static llama_block lay_out(config const& c, layer_layout& layer) {
    return {.attention_norm = layer.norm("input_layernorm"),
            .qkv = layer.qkv(c.qkv_bias),
            .o = layer.linear({{"self_attn.o_proj", c.hidden}}, c.query_columns(), c.output_bias),
            .mlp_norm = layer.norm("post_attention_layernorm"),
            .mlp = layer.mlp(c.mlp_bias),
            .heads = layer.heads()};
  }

  /// [rows, hidden] -> [rows, hidden]. Batch and table must outlive the backward.
  template <device_policy D, element T>
  autograd::variable<D, T> operator()(autograd::variable<D, T> x, nn::batch const* b,
                                      nn::rotary_table<D, wide<T>> const* table) const {
    auto const turned = nn::rotary(qkv(attention_norm(x)), *b, *table, heads);
    x = o.onto(x, nn::attention(turned, *b, heads));
    return mlp.onto(x, mlp_norm(x));
  }
};

/// Llama 2 and 3: any size, tied or untied head.
using llama = decoder<llama_block>;

static_assert(architecture<llama>);

}  // namespace superoffload::model
