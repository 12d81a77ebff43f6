// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/decoder.hpp>
#include <superoffload/nn/dropout.hpp>

#include <cstdint>
#include <string>
#include <tuple>

namespace superoffload::model {

/// One layer of Seed-OSS: Llama's, with biases of queries, keys and values, and with dropout of the attention
/// weights and of what is added to the residual.
struct seed_oss_block {
  nn::rms_norm attention_norm;    ///< before attention
  nn::linear qkv,                 ///< [(heads + 2 kv_heads) * head_dim, hidden]
      o;                          ///< [hidden, heads * head_dim]
  nn::rms_norm mlp_norm;          ///< before the MLP
  nn::gated_mlp mlp;              ///< of `intermediate` columns
  nn::attention_heads heads;      ///< of attention
  nn::dropout attention_dropout,  ///< of the attention weights
      o_dropout,                  ///< of what attention adds
      down_dropout;               ///< of what the MLP adds

  static std::string model_type() { return "seed_oss"; }  ///< the model_type in config.json
  /// References to the layers with parameters, for decoder.
  auto parts() { return std::tie(attention_norm, qkv, o, mlp_norm, mlp); }

  /// The layer's parameters in `layer`'s unit, for a checked configuration.
  static seed_oss_block lay_out(config const& c, layer_layout& layer) {
    auto const site = 3 * static_cast<std::uint64_t>(layer.layer());
    return {.attention_norm = layer.norm("input_layernorm"),
            .qkv = layer.qkv(c.qkv_bias),
            .o = layer.linear({{"self_attn.o_proj", c.hidden}}, c.query_columns(), c.output_bias),
            .mlp_norm = layer.norm("post_attention_layernorm"),
            .mlp = layer.mlp(c.mlp_bias),
            .heads = layer.heads(),
            .attention_dropout = {c.attention_dropout, site},
            .o_dropout = {c.residual_dropout, site + 1},
            .down_dropout = {c.residual_dropout, site + 2}};
  }

  /// [rows, hidden] -> [rows, hidden]. Batch and table must outlive the backward.
  template <device_policy D, element T>
  autograd::variable<D, T> operator()(autograd::variable<D, T> x, nn::batch const* b,
                                      nn::rotary_table<D, wide<T>> const* table) const {
    auto const turned = nn::rotary(qkv(attention_norm(x)), *b, *table, heads);
    auto const attended = nn::attention(turned, *b, heads, {}, attention_dropout.mask(x.on(), *b));
    x = o_dropout.onto(x, o, attended, *b);
    return down_dropout.onto(x, mlp, mlp_norm(x), *b);
  }
};

/// Seed-OSS, with or without dropout.
using seed_oss = decoder<seed_oss_block>;

static_assert(architecture<seed_oss>);

}  // namespace superoffload::model
