// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/decoder.hpp>
#include <superoffload/nn/head_norm.hpp>
#include <superoffload/nn/swiglu.hpp>

#include <string>
#include <tuple>

namespace superoffload::model {

/// One dense layer of Qwen3 (arXiv 2505.09388): Llama's, with a norm of each query and key head.
struct qwen3_block {
  nn::rms_norm attention_norm;
  nn::linear qkv;
  nn::head_norm head_norm;
  nn::linear o;
  nn::rms_norm mlp_norm;
  nn::linear gate_up, down;
  nn::attention_heads heads;

  static std::string model_type() { return "qwen3"; }
  auto parts() { return std::tie(attention_norm, qkv, head_norm, o, mlp_norm, gate_up, down); }

  static qwen3_block lay_out(config const& c, layer_layout& layer) {
    return {.attention_norm = layer.norm("input_layernorm"),
            .qkv = layer.qkv(),
            .head_norm = layer.head_norm("self_attn.q_norm", "self_attn.k_norm"),
            .o = layer.linear({{"self_attn.o_proj", c.hidden}}, c.query_columns()),
            .mlp_norm = layer.norm("post_attention_layernorm"),
            .gate_up = layer.gate_up(),
            .down = layer.linear({{"mlp.down_proj", c.hidden}}, c.intermediate),
            .heads = layer.heads()};
  }

  template <device_policy D, element T>
  autograd::variable<D, T> operator()(autograd::variable<D, T> x, nn::batch const* b,
                                      nn::rotary_table<D, wide<T>> const* table) const {
    auto const turned = head_norm.turned(qkv(attention_norm(x)), *b, *table, heads);
    x = o.onto(x, nn::attention(turned, *b, heads));
    return down.onto(x, nn::swiglu(gate_up(mlp_norm(x))));
  }
};

/// Qwen3 without experts, tied or untied head.
using qwen3 = decoder<qwen3_block>;

static_assert(architecture<qwen3>);

}  // namespace superoffload::model
