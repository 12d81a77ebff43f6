// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/decoder.hpp>
#include <superoffload/nn/experts.hpp>
#include <superoffload/nn/head_norm.hpp>

#include <string>
#include <tuple>

namespace superoffload::model {

/// One layer of Qwen3 with experts (arXiv 2505.09388): attention as in Qwen3, and a mixture of experts
/// instead of the MLP. The tensors of all experts form one parameter. A layer that the configuration keeps
/// dense has the gated MLP of Qwen3.
struct qwen3_moe_block {
  nn::rms_norm attention_norm;  ///< before attention
  nn::linear qkv;               ///< [(heads + 2 kv_heads) * head_dim, hidden]
  nn::head_norm head_norm;      ///< of queries and keys, before rotation
  nn::linear o;                 ///< [hidden, heads * head_dim]
  nn::rms_norm mlp_norm;        ///< before the experts or the MLP
  nn::experts experts;          ///< without biases; none in a dense layer
  nn::gated_mlp mlp;            ///< of dense_intermediate columns; none in a layer with experts
  nn::attention_heads heads;    ///< of attention

  static std::string model_type() { return "qwen3_moe"; }  ///< the model_type in config.json
  /// References to the layers with parameters, for decoder.
  auto parts() { return std::tie(attention_norm, qkv, head_norm, o, mlp_norm, experts, mlp); }

  /// The layer's parameters in `layer`'s unit, for a checked configuration.
  static qwen3_moe_block lay_out(config const& c, layer_layout& layer) {
    qwen3_moe_block made{
        .attention_norm = layer.norm("input_layernorm"),
        .qkv = layer.qkv(c.qkv_bias),
        .head_norm = layer.head_norm("self_attn.q_norm", "self_attn.k_norm"),
        .o = layer.linear({{"self_attn.o_proj", c.hidden}}, c.query_columns(), c.output_bias),
        .mlp_norm = layer.norm("post_attention_layernorm"),
        .experts = {},
        .mlp = {},
        .heads = layer.heads()};
    if (c.has_experts(layer.layer())) {
      made.experts = lay_out_experts(c, layer);
    } else {
      auto const inner = c.dense_intermediate;
      auto const gate_up = layer.linear({{"mlp.gate_proj", inner}, {"mlp.up_proj", inner}}, c.hidden);
      made.mlp = layer.mlp(gate_up, layer.linear({{"mlp.down_proj", c.hidden}}, inner));
    }
    return made;
  }

  /// [rows, hidden] -> [rows, hidden]. Batch and table must outlive the backward. `load`: for the
  /// load-balancing loss.
  template <device_policy D, element T>
  autograd::variable<D, T> operator()(autograd::variable<D, T> x, nn::batch const* b,
                                      nn::rotary_table<D, wide<T>> const* table, nn::layer_load load) const {
    auto const turned = head_norm.turned(qkv(attention_norm(x)), *b, *table, heads);
    x = o.onto(x, nn::attention(turned, *b, heads));
    if (experts.count == 0) {
      return mlp.onto(x, mlp_norm(x));
    }
    return experts.onto(x, mlp_norm(x), load);
  }

private:
  static nn::experts lay_out_experts(config const& c, layer_layout& layer) {
    layer_layout::parts gate_up, down;
    for (std::int64_t expert = 0; expert < c.experts; ++expert) {
      auto const prefix = "mlp.experts." + std::to_string(expert) + ".";
      gate_up.emplace_back(prefix + "gate_proj", c.intermediate);
      gate_up.emplace_back(prefix + "up_proj", c.intermediate);
      down.emplace_back(prefix + "down_proj", c.hidden);
    }
    return {.router = layer.linear({{"mlp.gate", c.experts}}, c.hidden),
            .gate_up = layer.linear(gate_up, c.hidden).weight,
            .down = layer.linear(down, c.intermediate).weight,
            .count = c.experts,
            .intermediate = c.intermediate,
            .each = static_cast<std::int32_t>(c.experts_per_token),
            .normalised = c.normalizes_experts};
  }
};

/// Qwen3 with experts in every layer, or in those that the configuration says.
using qwen3_moe = decoder<qwen3_moe_block>;

static_assert(architecture<qwen3_moe>);

}  // namespace superoffload::model
